"""Splits a cluster by k-means on the features of the clustering."""

import threading
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy.orm import Session

from app.core.clusterings.members import Ids, read_members
from app.core.clusterings.rows import Example, get_cluster, get_clustering, read_examples
from app.core.datasets.features import open_features
from app.core.platform.db import Database
from app.core.platform.errors import InvalidRequest, QueueFull
from app.core.platform.tables import Cluster, Clustering
from app.core.storage import Storage

_FIT_ROWS = 20_000  # that k-means uses; the others are assigned to the nearest center
_CHUNK_ROWS = 10_000
_EXAMPLES = 9  # of each part in a preview
_WAIT_SECONDS = 20.0
_split_slot = threading.BoundedSemaphore(1)  # a split uses all cores and much memory


@dataclass(frozen=True, kw_only=True)
class SplitPlan:
    """The images of each part: the largest part first, the most typical images of a part first."""

    revision: int
    parts: tuple[Ids, ...]


class PreviewedPart(NamedTuple):
    size: int
    examples: list[Example]  # the images closest to its center


@dataclass(frozen=True, kw_only=True)
class SplitPreview:
    revision: int
    parts: list[PreviewedPart]  # as in the plan


def plan_split(
    db: Database,
    storage: Storage,
    tenant: str,
    clustering_id: str,
    *,
    revisions: Collection[int] | None,
    cluster_id: int,
    parts: int,
    seed: int,
) -> SplitPlan | None:
    """Computes a split; None if the clustering is at another revision."""
    if not _split_slot.acquire(timeout=_WAIT_SECONDS):
        raise QueueFull("Another split is being computed; retry in a moment.")
    try:
        with db.read() as session:
            clustering = get_clustering(session, tenant, clustering_id)
            if revisions is not None and clustering.revision not in revisions:
                return None
            _check_active(session, clustering, cluster_id)
            ids, _, hashes = read_members(session, clustering.id, [cluster_id])
            _check_parts(parts, len(ids))
        stored = open_features(storage, clustering.embedding_folder)
        part, score = _parts(stored.features, stored.all_rows_of(hashes), parts, seed)  # (N,) each
    finally:
        _split_slot.release()
    typical = np.argsort(-score, kind="stable")
    ids, part = ids[typical], part[typical]
    sizes = np.bincount(part, minlength=parts)
    order = np.argsort(-sizes, kind="stable")
    members = tuple(ids[part == number] for number in order if sizes[number])
    return SplitPlan(revision=clustering.revision, parts=members)


def preview_split(
    db: Database,
    storage: Storage,
    tenant: str,
    clustering_id: str,
    cluster_id: int,
    *,
    parts: int,
    seed: int,
) -> SplitPreview:
    """The parts that a split would make, with examples; changes nothing."""
    with db.read() as session:
        get_cluster(session, get_clustering(session, tenant, clustering_id), cluster_id)
    plan = plan_split(
        db,
        storage,
        tenant,
        clustering_id,
        revisions=None,
        cluster_id=cluster_id,
        parts=parts,
        seed=seed,
    )
    assert plan is not None  # at any revision
    first = [[image_id.decode() for image_id in part[:_EXAMPLES]] for part in plan.parts]
    with db.read() as session:
        found = read_examples(session, clustering_id, list(chain.from_iterable(first)))
    shown = [[found[image_id] for image_id in ids if image_id in found] for ids in first]
    previewed = [
        PreviewedPart(len(members), examples)
        for members, examples in zip(plan.parts, shown, strict=True)
    ]
    return SplitPreview(revision=plan.revision, parts=previewed)


def _check_active(session: Session, clustering: Clustering, cluster_id: int) -> None:
    cluster = session.get(Cluster, (clustering.id, cluster_id))
    if cluster is None or not cluster.active:
        raise InvalidRequest.field("cluster_id", f"there is no cluster {cluster_id}")


def _check_parts(parts: int, size: int) -> None:
    if size < parts:
        raise InvalidRequest.field(
            "parts", f"must be at most {size}, the number of images in the cluster"
        )


def _parts(
    features: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], parts: int, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The part of each row, and a score that is higher the closer it is to the part's center:
    (N,) each."""
    from temi.analysis.kmeans import kmeans  # scikit-learn takes seconds to load
    from temi.standardize import unit_rows

    sample = rows
    if len(rows) > _FIT_ROWS:
        sample = np.random.default_rng(seed).choice(rows, _FIT_ROWS, replace=False)
    fitted = unit_rows(features[np.sort(sample)])  # (M, D)
    labels = kmeans(fitted, parts, seed=seed)
    counts = np.bincount(labels, minlength=parts)
    if (counts == 0).any():
        raise InvalidRequest.field(
            "parts", f"the images of the cluster form only {np.count_nonzero(counts)} groups"
        )
    centers = np.stack([fitted[labels == part].mean(axis=0) for part in range(parts)])  # (P, D)
    half_norms = np.square(centers).sum(axis=1) / 2
    part_of = np.empty(len(rows), dtype=np.int64)
    score_of = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = slice(start, start + _CHUNK_ROWS)
        scores = unit_rows(features[rows[chunk]]) @ centers.T - half_norms
        part_of[chunk], score_of[chunk] = scores.argmax(axis=1), scores.max(axis=1)
    return part_of, score_of
