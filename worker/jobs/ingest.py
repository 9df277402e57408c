"""Ingest jobs: every image of a source is decoded and stored by its hash, or listed as an issue.
Files that are not images are counted and skipped."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, insert, select, update

from app.core.access.quota import check_growth, quota_of
from app.core.datasets.changes import mark_duplicates
from app.core.datasets.rows import folder_label, last_position, totals
from app.core.datasets.skipped import add_skipped
from app.core.datasets.sources.base import Member, Source, cut_text, is_system_file
from app.core.datasets.sources.file_kinds import skip_reason
from app.core.datasets.sources.opening import open_source
from app.core.jobs.lifecycle import Progress, finish
from app.core.jobs.requests.ingest import upload_keys
from app.core.platform.activity import reporting
from app.core.platform.errors import ImageRejected
from app.core.platform.ids import new_id
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, DatasetIssue, Image
from app.core.storage import Batch, store_blob
from app.core.storage.deletion.retention import delete_unless_retained
from worker.context import JobContext, ProgressReporter
from worker.jobs.ingest_counts import check_counts, count_files
from worker.stages.prefetch import BytesAhead, prefetch

_COMMIT_ROWS = 2_000
_COMMIT_SECONDS = 2.0
_MAX_DETAIL = 500  # characters of an issue's text


@dataclass(frozen=True)
class _Read:
    """A member's bytes, or the error of reading them, or why it is skipped."""

    member: Member
    data: bytes | None = None
    error: ImageRejected | None = None
    skipped: str | None = None

    @property
    def size(self) -> int:
        return len(self.data or b"")


@dataclass
class _Rows:
    images: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    last: int = -1  # position

    def add(self, row: dict[str, Any]) -> None:
        """Gives ids in this order, so that sorting by id gives the order of the upload."""
        self.last = row["position"]
        if "skipped" in row:
            self.skipped[row["skipped"]] += 1
        elif "code" in row:
            self.issues.append({"id": new_id("iss"), **row})
        else:
            self.images.append({"id": new_id("img"), **row})

    @property
    def count(self) -> int:
        return len(self.images) + len(self.issues)


class _Quota:
    """Ends an ingest where the quota of its key is used up: the size is not known before."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        job = context.job
        added = select(func.sum(Image.bytes)).where(
            Image.dataset_id == job.dataset_id, Image.position >= job.config["first_position"]
        )
        with context.runtime.db.read() as session:
            self._limit = quota_of(session, job.created_by)
            self._added = int(session.scalar(added) or 0)  # by an earlier attempt

    def add(self, size: int) -> None:
        """Counts images whose rows are written; raises above the quota, and the ingest fails."""
        self._added += size
        if self._limit is not None:
            with self._context.runtime.db.read() as session:
                check_growth(session, self._context.job.tenant, self._added, self._limit)


def run_ingest(context: JobContext) -> None:
    started = time.monotonic()
    runtime, job = context.runtime, context.job
    source = open_source(runtime.settings, runtime.storage, job.config["source"], job.id)
    with runtime.db.read() as session:
        done = last_position(session, context.job.dataset_id)
        counts = count_files(session, context.job)
    progress = context.start_progress("ingest", total=source.total, completed=counts.total)
    progress.failed, progress.skipped = counts.issues, counts.skipped_total
    blobs, quota = context.runtime.storage.batch(), _Quota(context)
    rows = _store_members(context, source, done, blobs)
    try:
        for batch in _batches(rows, progress):
            blobs.flush()  # before the rows: a power cut must not lose bytes that rows refer to
            _save(context, batch)
            quota.add(sum(image["bytes"] for image in batch.images))
            progress.checkpoint()
    finally:  # nothing stays of a source that was refused half-way
        rows.close()
        blobs.discard()
    _complete(context, time.monotonic() - started)
    delete_unless_retained(context.runtime.db, context.runtime.storage, upload_keys(context.job))


def _first_position(context: JobContext) -> int:
    return int(context.job.config["first_position"])


def _store_members(
    context: JobContext, source: Source, done: int, blobs: Batch
) -> Generator[dict[str, Any], None, None]:
    """Yields rows in the order of the source. Sources other than archives are read in parallel."""
    first = _first_position(context)

    def read_member(member: Member) -> _Read:
        return _read_member(member, only_images=source.only_images)

    # A resumed job skips what is done, which takes long in a large archive.
    members = (m for m in reporting(source.members) if first + m.position > done)
    if source.parallel_reads:
        return prefetch(
            lambda member: _store_member(context, read_member(member), blobs),
            members,
            threads=source.parallel_reads,
        )
    ahead = BytesAhead(context.runtime.settings.ingest_ahead_bytes)

    def store(read: _Read) -> dict[str, Any]:
        with ahead.released(read.size):
            return _store_member(context, read, blobs)

    return prefetch(
        store,
        (ahead.admitted(read, read.size) for read in map(read_member, members)),
        threads=context.runtime.settings.threads,
    )


def _read_member(member: Member, *, only_images: bool) -> _Read:
    if only_images:
        return _read_image(member)
    if is_system_file(member.name):
        return _Read(member, skipped=skip_reason(member.name, None))
    read = _read_image(member)
    skipped = skip_reason(member.name, read.data)
    return read if skipped is None else _Read(member, skipped=skipped)


def _read_image(member: Member) -> _Read:
    try:
        return _Read(member, member.read())
    except ImageRejected as error:
        return _Read(member, error=error)


def _store_member(context: JobContext, read: _Read, blobs: Batch) -> dict[str, Any]:
    """Returns the row of an image, of an issue if it cannot be decoded, or of a skipped file."""
    member = read.member
    if read.skipped is not None:
        return {"position": _first_position(context) + member.position, "skipped": read.skipped}
    labels_from = context.job.config["source"]["labels_from"]
    details = member_details(member, context.runtime.settings, by_folder=labels_from == "folder")
    common = {
        "dataset_id": context.job.dataset_id,
        "position": _first_position(context) + member.position,
        "name": details.name,
    }
    try:
        if read.error is not None:
            raise read.error
        assert read.data is not None
        facts = context.runtime.decoders.inspect(read.data)
    except ImageRejected as error:
        detail = " ".join([error.detail[:_MAX_DETAIL], *details.notes])
        return common | {"code": error.code, "detail": detail}
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


@dataclass(frozen=True)
class MemberDetails:
    """The name, label and attributes of a member, limited so that lists of rows stay small."""

    name: str
    label: str | None
    attributes: dict[str, Any]
    notes: list[str] = field(default_factory=list)  # on what was cut or left out


def member_details(member: Member, settings: Settings, *, by_folder: bool) -> MemberDetails:
    label, attributes = member.label, member.attributes
    if label is None and by_folder:
        label = folder_label(member.name)
    notes = [
        f"{what} cut: it has {len(text.encode()):,} bytes"
        for what, text in (("name", member.name), ("label", label or ""))
        if len(text.encode()) > settings.max_name_bytes
    ]
    if (size := len(json.dumps(attributes))) > settings.max_attributes_bytes:
        attributes = {}
        notes.append(f"attributes left out: they have {size:,} bytes")
    return MemberDetails(
        name=cut_text(member.name, settings.max_name_bytes),
        label=None if label is None else cut_text(label, settings.max_name_bytes),
        attributes=attributes,
        notes=notes,
    )


def _batches(rows: Iterator[dict[str, Any]], progress: ProgressReporter) -> Iterator[_Rows]:
    batch, started = _Rows(), time.monotonic()
    for row in rows:
        batch.add(row)
        progress.advance(failed=int("code" in row), skipped=int("skipped" in row))
        if batch.count >= _COMMIT_ROWS or time.monotonic() - started > _COMMIT_SECONDS:
            yield batch
            batch, started = _Rows(), time.monotonic()
    yield batch


def _save(context: JobContext, batch: _Rows) -> None:
    with context.transaction() as session:
        if batch.issues:
            session.execute(insert(DatasetIssue), batch.issues)
        if batch.skipped:
            first, dataset_id = _first_position(context), context.job.dataset_id
            add_skipped(session, dataset_id, first, batch.skipped, batch.last)
        if batch.images:
            session.execute(insert(Image), batch.images)
            first, last = batch.images[0]["position"], batch.images[-1]["position"]
            mark_duplicates(
                session, context.job.dataset_id, Image.position >= first, Image.position <= last
            )


def _complete(context: JobContext, seconds: float) -> None:
    dataset_id = context.job.dataset_id
    with context.runtime.db.read() as session:
        counts = count_files(session, context.job)
        end = last_position(session, dataset_id) + 1
        known = totals(session, dataset_id)
        check_counts(session, context.job, counts, context.runtime.settings.max_bad_fraction)
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
            result={
                "dataset_id": dataset_id,
                "image_count": counts.images,
                "issue_count": counts.issues,
                "skipped_count": counts.skipped_total,
                "skipped": counts.skipped,
            },
            progress=Progress(
                "ingest",
                counts.total,
                counts.total,
                failed=counts.issues,
                skipped=counts.skipped_total,
            ),
        )
