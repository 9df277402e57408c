"""Upload to dataset: every member is decoded once, stored under its hash, or listed as bad."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, update

from app.core.archives import Member, member_count, read_members
from app.core.datasets import (
    count_rows,
    fingerprint,
    folder_label,
    last_position,
    total_bytes,
)
from app.core.errors import DatasetEmpty, ImageRejected, TooManyBadFiles
from app.core.ids import new_id
from app.core.images import decode_image
from app.core.job_requests.ingest import drop_upload
from app.core.jobs import Progress, finish
from app.core.storage import blob_key
from app.core.tables import Dataset, DatasetIssue, Image
from worker.context import JobContext, Meter
from worker.prefetch import prefetch

_COMMIT_ROWS = 500
_COMMIT_SECONDS = 2.0


@dataclass(frozen=True)
class _Read:
    """A member's bytes, or why they could not be had. Reading is sequential, decoding is not."""

    position: int
    name: str
    data: bytes | None
    error: ImageRejected | None


@dataclass(frozen=True)
class _Rows:
    images: list[dict[str, Any]]
    issues: list[dict[str, Any]]


def run_ingest(context: JobContext) -> None:
    started = time.monotonic()
    with context.runtime.db.read() as session:
        dataset = session.get_one(Dataset, context.job.dataset_id)
        done = last_position(session, dataset.id)
    expected = member_count(context.runtime.storage.path(_upload_key(context)))
    meter = context.meter("ingest", total=expected, completed=max(0, done + 1 - _first(context)))
    settings = context.runtime.settings
    rows = prefetch(
        lambda member: _store_member(context, member),
        _read(context, done),
        threads=settings.threads,
    )
    for batch in _batches(rows, meter):
        _save(context, batch)
        meter.checkpoint()
    _complete(context, dataset, time.monotonic() - started)
    drop_upload(context.runtime.storage, context.job)


def _upload_key(context: JobContext) -> str:
    return str(context.job.config["source"]["key"])


def _first(context: JobContext) -> int:
    return int(context.job.config["first_position"])


def _read(context: JobContext, done: int) -> Iterator[_Read]:
    path = context.runtime.storage.path(_upload_key(context))
    for member in read_members(path, context.runtime.archive_limits):
        position = _first(context) + member.position
        if position > done:
            yield _read_one(position, member)


def _read_one(position: int, member: Member) -> _Read:
    try:
        return _Read(position, member.name, member.read(), None)
    except ImageRejected as error:
        return _Read(position, member.name, None, error)


def _store_member(context: JobContext, member: _Read) -> dict[str, Any]:
    """The row of a member: an image's if it decodes, else an issue's."""
    dataset_id, source = context.job.dataset_id, context.job.config["source"]
    common = {"dataset_id": dataset_id, "position": member.position, "name": member.name}
    try:
        if member.error is not None:
            raise member.error
        assert member.data is not None
        decoded = decode_image(member.data, max_pixels=context.runtime.settings.max_image_pixels)
    except ImageRejected as error:
        return common | {"code": error.code, "detail": error.detail}
    sha256 = hashlib.sha256(member.data).hexdigest()
    key = blob_key(sha256)
    if not context.runtime.storage.exists(key):
        context.runtime.storage.write(key, member.data)
    return common | {
        "sha256": sha256,
        "width": decoded.image.width,
        "height": decoded.image.height,
        "format": decoded.format,
        "bytes": len(member.data),
        "label": folder_label(member.name) if source["labels_from"] == "folder" else None,
        "attributes": {},
        "notes": decoded.notes,
    }


def _batches(rows: Iterator[dict[str, Any]], meter: Meter) -> Iterator[_Rows]:
    batch, started = _Rows([], []), time.monotonic()
    for row in rows:
        bad = "code" in row
        # ids are given here, in order, so that sorting by id is the order of the upload
        (batch.issues if bad else batch.images).append(
            {"id": new_id("iss" if bad else "img"), **row}
        )
        meter.advance(failed=int(bad))
        full = len(batch.images) + len(batch.issues) >= _COMMIT_ROWS
        if full or time.monotonic() - started > _COMMIT_SECONDS:
            yield batch
            batch, started = _Rows([], []), time.monotonic()
    yield batch


def _save(context: JobContext, batch: _Rows) -> None:
    with context.transaction() as session:
        if batch.images:
            session.execute(insert(Image), batch.images)
        if batch.issues:
            session.execute(insert(DatasetIssue), batch.issues)


def _complete(context: JobContext, dataset: Dataset, seconds: float) -> None:
    with context.runtime.db.read() as session:
        images, labelled, issues = count_rows(session, dataset.id)
        digest = fingerprint(session, dataset.id)
        size = total_bytes(session, dataset.id)
        end = last_position(session, dataset.id) + 1
    limit = context.runtime.settings.max_bad_fraction
    if images + issues == 0:
        raise DatasetEmpty("The archive holds no files.")
    if images == 0 or issues > limit * (images + issues):
        raise TooManyBadFiles(
            f"{issues} of {images + issues} files are bad (at most {limit:.0%} may be); "
            "the dataset's issues name each one."
        )
    context.record_timing("ingest", seconds, skipped=False)
    with context.transaction() as session:
        session.execute(
            update(Dataset)
            .where(Dataset.id == dataset.id)
            .values(
                status="ready",
                error=None,
                fingerprint=digest,
                end_position=end,
                bytes=size,
                image_count=images,
                labelled_count=labelled,
                issue_count=issues,
            )
        )
        result = {"dataset_id": dataset.id, "image_count": images, "issue_count": issues}
        done = Progress("ingest", images + issues, images + issues, failed=issues)
        finish(
            session,
            context.job.id,
            context.fence,
            status="succeeded",
            result=result,
            progress=done,
        )
