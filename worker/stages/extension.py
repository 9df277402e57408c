"""The register stage of a predict job that adds images to an existing clustering.

Edits stay: an image that the clustering has keeps its cluster. A new image goes where its cluster
is now: to the cluster that it was merged into, or to the nearest part of a cluster that was split.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.extension import find_targets
from app.core.clusterings.operations import lock_clustering
from app.core.clusterings.operations.editor import ClusteringEditor
from app.core.clusterings.rows import Assigned
from app.core.platform.activity import reporting
from app.core.platform.tables import ABSENT, EXCLUDED, Assignment, Clustering
from temi.analysis.centers import nearest_center
from worker.context import JobContext
from worker.stages.base import ModelJob
from worker.stages.registration import (
    ClusteringResult,
    finish_registration,
    image_ids,
    to_rows,
)


def register_extension(context: JobContext, job: ModelJob, result: ClusteringResult) -> bool:
    """Adds the images that the clustering lacks, and ends the job. Returns False without a change
    if the job has no clustering to extend, or it was deleted."""
    clustering_id = context.job.config["clustering_id"]
    if clustering_id is None:
        return False
    context.start_progress("register", total=len(result.assignments.cluster))
    ids = image_ids(context)
    with context.runtime.db.read() as session:
        clustering = session.get(Clustering, clustering_id)
        if clustering is None:
            return False
        planned, rows = clustering.revision, _new_rows(session, clustering, job, ids, result)
    with context.transaction() as session:
        clustering = session.get(Clustering, clustering_id)
        if clustering is None:
            return False
        lock_clustering(session, clustering)
        if clustering.revision != planned:  # edited meanwhile
            rows = _new_rows(session, clustering, job, ids, result)
        clustering.dataset_fingerprint = context.job.dataset_fingerprint
        clustering.embedding_folder = result.embedding_folder
        if rows:
            _add(context, session, clustering, rows, result)
        summary = {
            "clustering_id": clustering.id,
            "model": {"name": job.model_name, "version": job.model_version},
            "metrics": result.metrics,
            "added_images": len(rows),
        }
        finish_registration(context, session, summary, len(ids))
    return True


def _add(
    context: JobContext,
    session: Session,
    clustering: Clustering,
    rows: Sequence[Assigned],
    result: ClusteringResult,
) -> None:
    editor = ClusteringEditor(session, clustering)
    editor.add_images(rows)
    clustering.metrics = result.metrics
    arguments = {"images": len(rows), "job_id": context.job.id}
    editor.finish("extend", arguments, created_by=None)


def _new_rows(
    session: Session,
    clustering: Clustering,
    job: ModelJob,
    ids: Sequence[str],
    result: ClusteringResult,
) -> list[Assigned]:
    """The rows of the images that the clustering lacks; none if the job is for features only."""
    if job.context.job.config.get("features_only"):
        return []
    current = _current_clusters(session, clustering, ids)  # (N,)
    new = np.flatnonzero(current == ABSENT)  # (M,)
    outputs = result.assignments.cluster[new]
    targets = find_targets(session, clustering, len(result.labels))
    targets.append([EXCLUDED])  # at -1, which is EXCLUDED: novel images
    placed = np.array([targets[output][0] for output in outputs], dtype=np.int64)
    for output in {int(each) for each in outputs if len(targets[each]) > 1}:
        members = {number: np.flatnonzero(current == number) for number in targets[output]}
        chosen = outputs == output
        placed[chosen] = _nearest(job.embedding.features(), new[chosen], members)
    found = to_rows([ids[int(row)] for row in new], result.assignments.take(new))
    return [row._replace(cluster_id=int(number)) for row, number in zip(found, placed, strict=True)]


def _current_clusters(
    session: Session, clustering: Clustering, ids: Sequence[str]
) -> npt.NDArray[np.int64]:
    """The cluster of each image, or ABSENT: (N,)."""
    query = select(Assignment.image_id, Assignment.cluster_id)
    found = session.execute(query.where(Assignment.clustering_id == clustering.id))
    cluster_of = {image_id: number for image_id, number in reporting(found)}
    return np.array([cluster_of.get(image_id, ABSENT) for image_id in ids], dtype=np.int64)


def _nearest(
    features: npt.NDArray[np.float32],
    rows: npt.NDArray[np.intp],
    members: dict[int, npt.NDArray[np.intp]],
) -> npt.NDArray[np.int64]:
    """The cluster with the nearest center, of those that have members: (M,)."""
    known = {number: of for number, of in members.items() if len(of)}
    if not known:  # all of its images were moved or deleted
        return np.full(len(rows), next(iter(members)), dtype=np.int64)
    numbers = np.array(list(known), dtype=np.int64)
    return numbers[nearest_center(features, rows, list(known.values()))]
