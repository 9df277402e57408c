"""Export jobs: write a clustering to a file. After a crash the file is written from the start."""

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.revisions import (
    LabeledImage,
    LabelFilter,
    RevisionView,
    iterate_pages,
    open_revision,
)
from app.core.clusterings.rows import get_clustering
from app.core.exports.classes import Classes
from app.core.exports.formats import FORMATS
from app.core.exports.purity import PurityFilter
from app.core.exports.source import ExportSource
from app.core.exports.splits import make_split
from app.core.jobs.lifecycle import Progress, finish
from app.core.platform.activity import report_activity
from app.core.platform.errors import NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import Clustering, Dataset, Export
from app.core.storage.keys import blob_key, export_key
from worker.context import JobContext, ProgressReporter

_BLOCK = 1024 * 1024
_FILTERS = ("cluster_ids", "min_probability", "min_purity", "proof", "include_excluded")


@dataclass(frozen=True)
class _Written:
    image_count: int
    bytes: int
    sha256: str


def run_export(context: JobContext) -> None:
    started = time.monotonic()
    with context.runtime.db.read() as session:
        clustering = get_clustering(
            session, context.job.tenant, context.job.config["clustering_id"]
        )
        view = open_revision(session, clustering, context.job.config["revision"])
        dataset = session.get_one(Dataset, clustering.dataset_id)
    progress = context.start_progress("export", total=clustering.image_count)
    rows = _Rows(context, view, progress)
    source = _source(context, clustering, dataset, rows)
    written = _write(context, source, rows)
    context.record_timing("export", time.monotonic() - started, skipped=False)
    _complete(
        context, written, rows.left_out, Progress("export", progress.completed, progress.completed)
    )


class _Rows:
    """The rows that match the filter, counted; the progress counts all rows."""

    def __init__(self, context: JobContext, view: RevisionView, progress: ProgressReporter) -> None:
        config = context.job.config
        chosen = config["cluster_ids"]
        self.filter = LabelFilter(
            cluster_ids=None if chosen is None else frozenset(chosen),
            min_probability=config["min_probability"],
            include_excluded=config["include_excluded"],
        )
        self.view = view
        self.count = 0
        self.left_out = 0  # because their labels are not pure enough
        self._db = context.runtime.db
        self._page = FORMATS[config["format"]].page
        self._progress = progress
        self._purity = _purity_filter(context)

    def pages(self) -> Iterator[list[LabeledImage]]:
        for page in iterate_pages(self._db, self.view, self._page):
            found = list(filter(self.filter.keeps, page))
            if kept := list(filter(self._is_pure, found)):
                yield kept
            self.count += len(kept)
            self.left_out += len(found) - len(kept)
            self._progress.advance(len(page))

    def unreported(self) -> Iterator[LabeledImage]:
        """The same rows, without counting them."""
        for page in iterate_pages(self._db, self.view):
            report_activity()
            yield from filter(self._is_pure, filter(self.filter.keeps, page))

    def _is_pure(self, row: LabeledImage) -> bool:
        return self._purity is None or self._purity.keeps(row)

    @property
    def clusters(self) -> dict[int, str]:
        chosen = self.filter.cluster_ids
        return {n: label for n, label in self.view.labels.items() if chosen is None or n in chosen}


def _purity_filter(context: JobContext) -> PurityFilter | None:
    config = context.job.config
    if config["min_purity"] is None:
        return None
    clusters, probability = config.get("pure_cluster_ids"), config.get("proven_probability")
    with context.runtime.db.read() as session:
        return PurityFilter(session, config["clustering_id"], clusters or (), probability)


def _source(
    context: JobContext, clustering: Clustering, dataset: Dataset, rows: _Rows
) -> ExportSource:
    storage, settings = context.runtime.storage, context.runtime.settings
    config, classes = context.job.config, Classes.of(rows.clusters)
    fraction, seed = config["validation_fraction"], config["split_seed"]
    split = make_split(rows.unreported(), classes, fraction, seed)
    return ExportSource(
        clustering_id=clustering.id,
        revision=rows.view.revision,
        model=f"{clustering.model_name}/versions/{clustering.model_version}",
        dataset_name=dataset.name,
        created_at=clustering.created_at,
        classes=classes,
        split=split,
        pages=rows.pages,
        read_image=lambda sha256: storage.read(blob_key(sha256)),
        scratch=settings.temporary_dir,
        url_base=config["image_url_base"] or settings.public_url,
    )


def _key(context: JobContext) -> str:
    return export_key(context.job.id, context.job.config["filename"])


def _write(context: JobContext, source: ExportSource, rows: _Rows) -> _Written:
    format_ = FORMATS[context.job.config["format"]]
    with context.runtime.storage.writing(_key(context)) as file:
        format_.write(source, file)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        sha256 = _sha256(file)
    return _Written(image_count=rows.count, bytes=size, sha256=sha256)


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
        report_activity()
    return digest.hexdigest()


def _complete(context: JobContext, written: _Written, left_out: int, progress: Progress) -> None:
    job, export_id = context.job, new_id("exp")
    with context.transaction() as session:
        _lock_clustering(session, job.config["clustering_id"])
        session.add(
            Export(
                id=export_id,
                tenant=job.tenant,
                job_id=job.id,
                clustering_id=job.config["clustering_id"],
                revision=job.config["revision"],
                format=job.config["format"],
                filters={name: job.config.get(name) for name in _FILTERS},
                storage_key=_key(context),
                filename=job.config["filename"],
                media_type=FORMATS[job.config["format"]].media_type,
                **vars(written),
            )
        )
        session.flush()
        result: dict[str, Any] = {
            "export_id": export_id,
            "format": job.config["format"],
            "image_count": written.image_count,
            "left_out": left_out,  # by min_purity
            "bytes": written.bytes,
            "revision": job.config["revision"],
        }
        finish(session, job.id, context.fence, status="succeeded", result=result, progress=progress)


def _lock_clustering(session: Session, clustering_id: str) -> None:
    """Raises NotFound if it was deleted since the last page was read."""
    query = select(Clustering.id).where(Clustering.id == clustering_id)
    if session.scalar(query.with_for_update(read=True, key_share=True)) is None:
        raise NotFound(f"There is no clustering {clustering_id}.")
