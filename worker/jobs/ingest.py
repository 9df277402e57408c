"""Source to dataset: every member is decoded once, stored under its hash, or listed as bad."""

import hashlib
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, update

from app.core.datasets.changes import mark_duplicates
from app.core.datasets.rows import count_rows, last_position, totals
from app.core.datasets.sources.base import Member, Source
from app.core.datasets.sources.opening import open_source
from app.core.jobs.lifecycle import Progress, finish
from app.core.jobs.requests.ingest import upload_keys
from app.core.platform.activity import reporting
from app.core.platform.errors import DatasetEmpty, ImageRejected, TooManyBadFiles
from app.core.platform.ids import new_id
from app.core.platform.tables import Dataset, DatasetIssue, Image
from app.core.storage import Batch, store_blob
from app.core.storage.deletion.retention import delete_unless_retained
from worker.context import JobContext, Meter
from worker.jobs.member_details import member_details
from worker.jobs.storage_allowance import StorageAllowance
from worker.stages.prefetch import BytesAhead, prefetch

_COMMIT_ROWS = 2_000
_COMMIT_SECONDS = 2.0
_DETAIL = 500  # characters of an issue's own text


@dataclass(frozen=True)
class _Read:
    """A member's bytes, or why they could not be had."""

    member: Member
    data: bytes | None
    error: ImageRejected | None

    @property
    def size(self) -> int:
        return len(self.data or b"")


@dataclass(frozen=True)
class _Rows:
    images: list[dict[str, Any]]
    issues: list[dict[str, Any]]


def run_ingest(context: JobContext) -> None:
    started = time.monotonic()
    runtime, job = context.runtime, context.job
    source = open_source(runtime.settings, runtime.storage, job.config["source"], job.id)
    with runtime.db.read() as session:
        done = last_position(session, context.job.dataset_id)
        images, _, issues = count_rows(session, context.job.dataset_id, _first(context))
    meter = context.meter("ingest", total=source.total, completed=images + issues)
    meter.failed = issues
    blobs, allowance = context.runtime.storage.batch(), StorageAllowance(context)
    rows = _stored(context, source, done, blobs)
    try:
        for batch in _batches(rows, meter):
            blobs.flush()  # rows never tell of bytes that a power cut could take
            _save(context, batch)
            allowance.use(sum(image["bytes"] for image in batch.images))
            meter.checkpoint()
    finally:  # of a source that was refused half-way, nothing stays
        rows.close()
        blobs.discard()
    _complete(context, time.monotonic() - started)
    delete_unless_retained(context.runtime.db, context.runtime.storage, upload_keys(context.job))


def _first(context: JobContext) -> int:
    return int(context.job.config["first_position"])


def _stored(
    context: JobContext, source: Source, done: int, blobs: Batch
) -> Generator[dict[str, Any], None, None]:
    """Rows in the order of the source. An archive is read in that order, others all over."""
    first = _first(context)
    # A resumed job reads past all that is done, which takes long in a large archive.
    members = (m for m in reporting(source.members) if first + m.position > done)
    if source.parallel_reads:
        return prefetch(
            lambda member: _store_member(context, _read_one(member), blobs),
            members,
            threads=source.parallel_reads,
        )
    ahead = BytesAhead(context.runtime.settings.ingest_ahead_bytes)

    def store(read: _Read) -> dict[str, Any]:
        with ahead.released(read.size):
            return _store_member(context, read, blobs)

    return prefetch(
        store,
        (ahead.admitted(read, read.size) for read in map(_read_one, members)),
        threads=context.runtime.settings.threads,
    )


def _read_one(member: Member) -> _Read:
    try:
        return _Read(member, member.read(), None)
    except ImageRejected as error:
        return _Read(member, None, error)


def _store_member(context: JobContext, read: _Read, blobs: Batch) -> dict[str, Any]:
    """The row of a member: an image's if it decodes, else an issue's."""
    member = read.member
    details = member_details(
        member, context.runtime.settings, by_folder=_labels_from(context) == "folder"
    )
    common = {
        "dataset_id": context.job.dataset_id,
        "position": _first(context) + member.position,
        "name": details.name,
    }
    try:
        if read.error is not None:
            raise read.error
        assert read.data is not None
        facts = context.runtime.decoders.inspect(read.data)
    except ImageRejected as error:
        told = " ".join([error.detail[:_DETAIL], *details.notes])
        return common | {"code": error.code, "detail": told}
    sha256 = hashlib.sha256(read.data).hexdigest()
    store_blob(context.runtime.storage, sha256, read.data, blobs)
    return common | {
        "sha256": sha256,
        "width": facts.width,
        "height": facts.height,
        "format": facts.format,
        "bytes": len(read.data),
        "label": details.label,
        "attributes": details.attributes,
        "notes": [*facts.notes, *details.notes],
    }


def _labels_from(context: JobContext) -> str:
    return str(context.job.config["source"]["labels_from"])


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
        if batch.issues:
            session.execute(insert(DatasetIssue), batch.issues)
        if batch.images:
            session.execute(insert(Image), batch.images)
            first, last = batch.images[0]["position"], batch.images[-1]["position"]
            mark_duplicates(
                session, context.job.dataset_id, Image.position >= first, Image.position <= last
            )


def _complete(context: JobContext, seconds: float) -> None:
    dataset_id = context.job.dataset_id
    with context.runtime.db.read() as session:
        images, _, issues = count_rows(session, dataset_id, _first(context))
        end = last_position(session, dataset_id) + 1
        known = totals(session, dataset_id)
    _check_enough(images, issues, context.runtime.settings.max_bad_fraction)
    context.record_timing("ingest", seconds, skipped=False)
    with context.transaction() as session:
        session.execute(
            update(Dataset)
            .where(Dataset.id == dataset_id)
            .values(status="ready", error=None, end_position=end, **known)
        )
        finish(
            session,
            context.job.id,
            context.fence,
            status="succeeded",
            result={"dataset_id": dataset_id, "image_count": images, "issue_count": issues},
            progress=Progress("ingest", images + issues, images + issues, failed=issues),
        )


def _check_enough(images: int, issues: int, limit: float) -> None:
    if images + issues == 0:
        raise DatasetEmpty("The source holds no files.")
    if images == 0 or issues > limit * (images + issues):
        raise TooManyBadFiles(
            f"{issues} of {images + issues} files are bad (at most {limit:.0%} may be); "
            "the dataset's issues name each one."
        )
