"""Ingest jobs: every image of a source is decoded and stored by its hash, or listed as an issue.
Files that are not images are counted and skipped."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from sqlalchemy import func, insert, select, update

from app.core.access.quota import check_growth, quota_of
from app.core.datasets.changes import mark_duplicates
from app.core.datasets.rows import last_position, totals
from app.core.datasets.skipped import add_skipped
from app.core.datasets.sources.opening import open_source
from app.core.jobs.lifecycle import Progress, finish
from app.core.jobs.requests.ingest import upload_keys
from app.core.platform.ids import new_ids
from app.core.platform.tables import Dataset, DatasetIssue, Image
from app.core.storage.deletion.retention import delete_unless_retained
from worker.context import JobContext, ProgressReporter
from worker.jobs.ingest_counts import check_counts, count_files
from worker.jobs.ingest_members import Row, first_position, store_members
from worker.stages.prefetch import prefetch

_COMMIT_ROWS = 2_000
_COMMIT_SECONDS = 2.0


@dataclass
class _Rows:
    images: list[Row] = field(default_factory=list)
    issues: list[Row] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    last: int = -1  # position

    def add(self, row: Row) -> None:
        self.last = row["position"]
        if "skipped" in row:
            self.skipped[row["skipped"]] += 1
        elif "code" in row:
            self.issues.append(row)
        else:
            self.images.append(row)

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
    rows = store_members(context, source, done, blobs)

    def commit(batch: _Rows) -> None:
        blobs.flush()  # before the rows: a power cut must not lose bytes that rows refer to
        _save(context, batch)
        quota.add(sum(image["bytes"] for image in batch.images))

    try:  # one thread, so that batches are committed in order while the next ones are read
        for _ in prefetch(commit, _batches(rows, progress), threads=1):
            progress.checkpoint()
    finally:  # nothing stays of a source that was refused half-way
        rows.close()
        blobs.discard()
    _complete(context, time.monotonic() - started)
    delete_unless_retained(context.runtime.db, context.runtime.storage, upload_keys(context.job))


def _batches(rows: Iterator[list[Row]], progress: ProgressReporter) -> Iterator[_Rows]:
    batch, started = _Rows(), time.monotonic()
    for row in chain.from_iterable(rows):
        batch.add(row)
        progress.advance(failed=int("code" in row), skipped=int("skipped" in row))
        if batch.count >= _COMMIT_ROWS or time.monotonic() - started > _COMMIT_SECONDS:
            yield batch
            batch, started = _Rows(), time.monotonic()
    yield batch


def _save(context: JobContext, batch: _Rows) -> None:
    with context.transaction() as session:
        if batch.issues:
            session.execute(insert(DatasetIssue), _with_ids("iss", batch.issues))
        if batch.skipped:
            first, dataset_id = first_position(context), context.job.dataset_id
            add_skipped(session, dataset_id, first, batch.skipped, batch.last)
        if batch.images:
            session.execute(insert(Image), _with_ids("img", batch.images))
            first, last = batch.images[0]["position"], batch.images[-1]["position"]
            mark_duplicates(
                session, context.job.dataset_id, Image.position >= first, Image.position <= last
            )


def _with_ids(prefix: str, rows: list[Row]) -> list[Row]:
    """In this order, so that sorting by id gives the order of the upload."""
    return [{"id": id_, **row} for id_, row in zip(new_ids(prefix, len(rows)), rows, strict=True)]


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
