"""The register stage of a sweep: a clustering and a model version for each point.

Each point is a transaction of its own: together they may be millions of rows. It also adds the
clustering's id to the point of the job's curve, so that a resumed job registers no point twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.current import set_first
from app.core.jobs.records import add_curve
from app.core.platform.tables import Clustering, JobCurve
from worker.stages.registration import (
    ClusteringResult,
    NewVersion,
    add_trained,
    default_labels,
    finish_registration,
    image_ids,
    make_manifest,
    novelty_file,
    reference_of,
    write_files,
)
from worker.stages.sweep_points import SweepJob, SweepPoint, kept_points, plausible_counts, suggest


@dataclass(frozen=True, kw_only=True)
class WrittenPoint:
    """A point whose model files are written."""

    point: SweepPoint
    version: NewVersion
    files: dict[str, str]
    result: ClusteringResult

    def add(self, session: Session, ids: Sequence[str]) -> None:
        context = self.point.job.context
        clustering = add_trained(context, session, self.version, self.files, self.result, ids)
        values = self.point.figures() | reference_of(clustering)
        add_curve(session, context.job.id, self.point.step, values)


def register_points(job: SweepJob) -> None:
    """Registers the kept points, and ends the job together with the last one."""
    context, ids = job.context, image_ids(job.context)
    figures = [point.figures() for point in job.points]
    suggested = suggest(job, figures)
    *others, last = kept = kept_points(job, figures, suggested)
    progress = context.start_progress("register", total=len(kept) * len(ids))
    if len(kept) < len(figures):
        context.log(
            f"Keeps {len(kept)} of {len(figures)} clusterings, because of "
            "TEMI_MAX_SWEEP_ASSIGNMENTS."
        )
    for point in others:
        if (written := _write(point)) is not None:
            with context.transaction() as session:
                written.add(session, ids)
        progress.advance(len(ids))
        progress.checkpoint()
    written = _write(last)
    with context.transaction() as session:
        if written is not None:
            written.add(session, ids)
        _finish(job, session, suggested, len(kept) * len(ids))
    _delete_files(job)


def _write(point: SweepPoint) -> WrittenPoint | None:
    """Returns None if the point is registered."""
    job = point.job
    with job.context.runtime.db.read() as session:
        if point.step in _registered(job, session):
            return None
    result = ClusteringResult(
        assignments=point.evaluated.assignments(),
        metrics=point.evaluated.metrics() | {"neighbors": job.neighbors.summary()},
        labels=default_labels(point.config.n_clusters),
        embedding_folder=job.embedding.folder,
    )
    version = NewVersion(
        name=job.context.job.config["model_name"],
        manifest=make_manifest(job.context, job.backbone, point.config, result),
        tensors={
            "model.safetensors": job.storage.read(point.model_key),
            **novelty_file(job.training.features()),
        },
        number=point.number,
    )
    files = write_files(job.context, version)
    return WrittenPoint(point=point, version=version, files=files, result=result)


def _registered(job: SweepJob, session: Session) -> dict[int, dict[str, Any]]:
    """The registered points of the job's curve, by step."""
    rows = session.scalars(select(JobCurve).where(JobCurve.job_id == job.context.job.id))
    return {row.step: row.values for row in rows if "clustering_id" in row.values}


def _finish(job: SweepJob, session: Session, suggested: float | None, count: int) -> None:
    missing = {"clustering_id": None, "model": None}
    registered = _registered(job, session)
    points = [registered.get(point.step) or point.figures() | missing for point in job.points]
    chosen = [each["clustering_id"] for each in points if each[job.parameter] == suggested]
    for clustering in session.scalars(select(Clustering).where(Clustering.id.in_(chosen))):
        set_first(session, clustering)
    summary: dict[str, Any] = {"parameter": job.parameter, "points": points, "suggested": suggested}
    if job.parameter == "n_clusters":
        summary["plausible"] = list(plausible_counts(points))
    finish_registration(job.context, session, summary, count)


def _delete_files(job: SweepJob) -> None:
    """Deletes what the registry and the database have now."""
    for point in job.points:
        for key in (point.model_key, point.evaluated.assignments_key):
            job.storage.delete(key)
