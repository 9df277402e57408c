"""Splits a cluster by k-means on the features of the clustering."""

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.rows import get_clustering
from app.core.datasets.rows import iterate_images
from app.core.platform.db import Database
from app.core.platform.errors import FeaturesMissing, InvalidRequest, QueueFull
from app.core.platform.tables import Assignment, Cluster, Clustering, Dataset, Image
from app.core.storage import Storage

Ids = npt.NDArray[np.bytes_]
Hashes = npt.NDArray[np.bytes_]

_FIT_ROWS = 20_000  # that k-means uses; the others are assigned to the nearest center
_CHUNK_ROWS = 10_000
_HASH = "S32"  # compares like bytes: only trailing zeros are stripped, on both sides
_WAIT_SECONDS = 20.0
_split_slot = threading.BoundedSemaphore(1)  # a split uses all cores and much memory


@dataclass(frozen=True, kw_only=True)
class SplitPlan:
    """The images of the new clusters, from the largest to the smallest; the largest part stays."""

    revision: int
    new_clusters: tuple[Ids, ...]


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
            ids, hashes = _members(session, clustering.id, cluster_id)
            _check_parts(parts, len(ids))
            features = _load(storage, f"{clustering.embedding_folder}/features.npy")
            rows = _rows_of(hashes, _stored_hashes(session, storage, clustering, features))
        part = _parts(features, rows, parts, seed)  # (N,)
    finally:
        _split_slot.release()
    sizes = np.bincount(part, minlength=parts)
    order = np.argsort(-sizes, kind="stable")
    new_clusters = tuple(ids[part == number] for number in order[1:] if sizes[number])
    return SplitPlan(revision=clustering.revision, new_clusters=new_clusters)


def _check_active(session: Session, clustering: Clustering, cluster_id: int) -> None:
    cluster = session.get(Cluster, (clustering.id, cluster_id))
    if cluster is None or not cluster.active:
        raise InvalidRequest.field("cluster_id", f"there is no cluster {cluster_id}")


def _check_parts(parts: int, size: int) -> None:
    if size < parts:
        raise InvalidRequest.field(
            "parts", f"must be at most {size}, the number of images in the cluster"
        )


def _members(session: Session, clustering_id: str, cluster_id: int) -> tuple[Ids, Hashes]:
    """Ids and hashes of a cluster's images, as arrays: lists would take five times the memory."""
    found = session.execute(
        select(Assignment.image_id, Image.sha256)
        .join(Image, Image.id == Assignment.image_id)
        .where(Assignment.clustering_id == clustering_id, Assignment.cluster_id == cluster_id)
        .order_by(Assignment.image_id)
        .execution_options(yield_per=_CHUNK_ROWS)
    )
    ids, hashes = [np.empty(0, dtype="S40")], [np.empty(0, dtype=_HASH)]
    for rows in found.partitions():
        ids.append(np.array([row[0] for row in rows], dtype="S40"))
        hashes.append(_to_hashes([row[1] for row in rows]))
    return np.concatenate(ids), np.concatenate(hashes)


def _stored_hashes(
    session: Session,
    storage: Storage,
    clustering: Clustering,
    features: npt.NDArray[np.float32],
) -> Iterator[Hashes]:
    """The image hashes of the rows of the features, in order."""
    key = f"{clustering.embedding_folder}/hashes.npy"
    if storage.exists(key):
        stored = _load(storage, key)
        if stored.shape != (len(features), 32) or stored.dtype != np.uint8:
            raise _missing()
        for start in range(0, len(stored), _CHUNK_ROWS):
            yield np.ascontiguousarray(stored[start : start + _CHUNK_ROWS]).view(_HASH)[:, 0]
        return
    dataset = session.get_one(Dataset, clustering.dataset_id)
    same_images = dataset.fingerprint == clustering.dataset_fingerprint is not None
    if not same_images or dataset.image_count != len(features):
        raise _missing()
    left = len(features)  # a running ingest may have added images after them
    for page in iterate_images(session, clustering.dataset_id):
        yield _to_hashes([image.sha256 for image in page[:left]])
        left -= len(page[:left])


def _rows_of(hashes: Hashes, stored: Iterator[Hashes]) -> npt.NDArray[np.int64]:
    """The row of the features for each hash: (N,)."""
    wanted, inverse = np.unique(hashes, return_inverse=True)
    row_of = np.full(len(wanted), -1, dtype=np.int64)
    start = 0
    for chunk in stored:
        at = np.searchsorted(wanted, chunk).clip(max=len(wanted) - 1)
        hit = wanted[at] == chunk
        row_of[at[hit]] = start + np.flatnonzero(hit)
        start += len(chunk)
    if (row_of < 0).any():
        raise _missing()
    return row_of[inverse]


def _parts(
    features: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], parts: int, seed: int
) -> npt.NDArray[np.int64]:
    """The part of each row: (N,)."""
    from temi.analysis.kmeans import kmeans, unit_rows  # scikit-learn takes seconds to load

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
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = slice(start, start + _CHUNK_ROWS)
        part_of[chunk] = (unit_rows(features[rows[chunk]]) @ centers.T - half_norms).argmax(axis=1)
    return part_of


def _load(storage: Storage, key: str) -> npt.NDArray[Any]:
    """Memory-mapped: only the rows of the cluster are read."""
    try:
        array: npt.NDArray[Any] = np.load(storage.path(key), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _missing() from error
    return array


def _to_hashes(sha256s: list[str]) -> Hashes:
    return np.frombuffer(bytes.fromhex("".join(sha256s)), dtype=_HASH)


def _missing() -> FeaturesMissing:
    return FeaturesMissing(
        "The features of this clustering are no longer stored, so its clusters cannot be split. "
        "Cluster or predict the dataset again."
    )
