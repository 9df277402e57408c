"""Similar clusters, and the images of a cluster by their similarity to an image.

What a request computes is kept for the next ones, until the clustering changes.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from app.core.clusterings.members import Ids, Members, read_members
from app.core.clusterings.rows import get_cluster, get_clustering
from app.core.datasets.features import (
    MILLION,
    Cosines,
    StoredFeatures,
    computing,
    open_features,
    row_chunks,
    to_hashes,
    unit_rows,
)
from app.core.datasets.rows import get_image
from app.core.platform.byte_cache import ByteCache
from app.core.platform.db import Database
from app.core.platform.errors import NotFound
from app.core.platform.tables import Assignment, AssignmentChange, Cluster, Clustering
from app.core.storage import Storage

_MAX_CHANGED = 500  # clusters; if more have changed, all are computed
_SUM_BYTES = 64 * 1024**2  # of the sums of features that are held at once


class SimilarCluster(NamedTuple):
    cluster_id: int
    label: str
    size: int
    similarity: float


@dataclass(frozen=True, kw_only=True)
class SimilarClusters:
    revision: int
    clusters: list[SimilarCluster]


@dataclass(frozen=True, kw_only=True)
class Centers:
    """Mean directions of the clusters that have images, at one revision."""

    revision: int
    images: int
    folder: str | None
    cluster_ids: npt.NDArray[np.int64]  # (C,)
    directions: npt.NDArray[np.float32]  # (C, D), of length one

    @property
    def nbytes(self) -> int:
        return self.cluster_ids.nbytes + self.directions.nbytes

    def cosines(self, cluster_id: int) -> dict[int, int]:
        """Cosines with the center of a cluster, in millionths; none if it has no images."""
        own = np.flatnonzero(self.cluster_ids == cluster_id)
        if not len(own):
            return {}
        directions = self.directions
        found = [np.empty(0)]
        for part in row_chunks(len(directions)):
            exact = directions[part].astype(np.float64)
            found.append(np.rint(exact @ directions[own[0]].astype(np.float64) * MILLION))
        cosines = np.concatenate(found).astype(int).tolist()
        return dict(zip(self.cluster_ids.tolist(), cosines, strict=True))

    def nearest(self, cluster_ids: Sequence[int], count: int) -> dict[int, list[int]]:
        """The clusters nearest to each of these, nearest first, without itself."""
        found: dict[int, list[int]] = {}
        for cluster_id in cluster_ids:
            others = self.cosines(cluster_id)
            others.pop(cluster_id, None)
            found[cluster_id] = sorted(others, key=lambda one: (-others[one], one))[:count]
        return found


class CenterChanges(NamedTuple):
    """What has to be computed for the centers of the current revision."""

    known: Centers | None  # of this or an earlier revision
    changed: set[int] | None  # clusters since then; None: all
    members: Members | None  # of these clusters; None if nothing has to be computed


@dataclass(frozen=True, kw_only=True)
class SimilarImages:
    """The images of a cluster, most similar first; equally similar ones in the order of ids."""

    ids: Ids
    cosines: Cosines

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.cosines.nbytes

    def __len__(self) -> int:
        return len(self.ids)

    def after(self, similarity: float, image_id: str) -> int:
        """The number of images up to this one, which may be gone."""
        cosine, last = round(similarity * MILLION), image_id.encode()
        before = (self.cosines > cosine) | ((self.cosines == cosine) & (self.ids <= last))
        return int(np.count_nonzero(before))

    def at(self, start: int, count: int) -> list[tuple[str, float]]:
        part = slice(start, start + count)
        ids = (image_id.decode() for image_id in self.ids[part].tolist())
        return list(zip(ids, (self.cosines[part] / MILLION).tolist(), strict=True))


_centers = ByteCache[Centers](160 * 1024**2)  # 25,000 clusters of 1,280 features fit
_orders = ByteCache[SimilarImages](32 * 1024**2)  # 700,000 images


def similar_clusters(
    db: Database, storage: Storage, tenant: str, clustering_id: str, cluster_id: int, limit: int
) -> SimilarClusters:
    """The other clusters that have images, by the cosine of the centers."""
    with computing():
        with db.snapshot() as session:
            clustering = get_clustering(session, tenant, clustering_id)
            get_cluster(session, clustering, cluster_id)
            columns = select(Cluster.cluster_id, Cluster.label, Cluster.size)
            active = Cluster.clustering_id == clustering.id, Cluster.active
            rows = session.execute(columns.where(*active)).all()
            changes = read_center_changes(session, clustering)
        cosines = current_centers(storage, clustering, changes).cosines(cluster_id)
    found = [
        SimilarCluster(*row, cosines[row.cluster_id] / MILLION)
        for row in rows
        if row.cluster_id in cosines and row.cluster_id != cluster_id
    ]
    found.sort(key=lambda one: (-one.similarity, one.cluster_id))
    return SimilarClusters(revision=clustering.revision, clusters=found[:limit])


def images_by_similarity(
    db: Database, storage: Storage, tenant: str, cluster: Cluster, image_id: str
) -> SimilarImages:
    """All images of a cluster, by the cosine of their features with those of an image of the
    dataset."""
    with computing():
        with db.snapshot() as session:
            clustering = get_clustering(session, tenant, cluster.clustering_id)
            image = get_image(session, tenant, image_id)
            if image.dataset_id != clustering.dataset_id:
                raise NotFound(f"The dataset of this clustering has no image {image_id}.")
            key = (*clustering_state(clustering), cluster.cluster_id, image_id)
            if (kept := _orders.get(key)) is not None:
                return kept
            members = read_members(session, clustering.id, [cluster.cluster_id])
        stored = open_features(storage, clustering.embedding_folder)
        rows = stored.all_rows_of(members.hashes)
        own = stored.all_rows_of(to_hashes([image.sha256]))
        (cosines,) = stored.cosines(stored.features[own], rows)
        order = np.lexsort((members.ids, -cosines))
        found = SimilarImages(ids=members.ids[order], cosines=cosines[order])
        _orders.add(key, found)
        return found


def clustering_state(clustering: Clustering) -> tuple[Hashable, ...]:
    """Changes with the images of the clusters; deleting images creates no revision."""
    return clustering.id, clustering.revision, clustering.image_count, clustering.embedding_folder


def read_center_changes(session: Session, clustering: Clustering) -> CenterChanges:
    known = _known_centers(clustering)
    changed = None if known is None else _changed_clusters(session, clustering, known)
    members = None if changed == set() else read_members(session, clustering.id, changed)
    return CenterChanges(known, changed, members)


def _known_centers(clustering: Clustering) -> Centers | None:
    """Those of this or an earlier revision, if they can be brought up to date."""
    known = _centers.get(clustering.id)
    if known is None or known.revision > clustering.revision:
        return None
    # Deleting images creates no revision, and images that were added come with other features.
    same = known.images == clustering.image_count and known.folder == clustering.embedding_folder
    return known if same else None


def _changed_clusters(session: Session, clustering: Clustering, known: Centers) -> set[int] | None:
    """The clusters that images left or joined since; None if they are too many."""
    if known.revision == clustering.revision:
        return set()
    same_image = and_(
        Assignment.clustering_id == AssignmentChange.clustering_id,
        Assignment.image_id == AssignmentChange.image_id,
    )
    pairs = session.execute(
        select(AssignmentChange.before, Assignment.cluster_id)
        .join(Assignment, same_image)
        .where(
            AssignmentChange.clustering_id == clustering.id,
            AssignmentChange.revision > known.revision,
        )
        .distinct()
    )
    found = {number for pair in pairs for number in pair if number >= 0}
    return found if len(found) <= _MAX_CHANGED else None


def current_centers(storage: Storage, clustering: Clustering, changes: CenterChanges) -> Centers:
    """Computes the centers of the members; those of clusters that did not change are kept."""
    known, changed, members = changes
    if members is None:
        assert known is not None
        numbers, directions = known.cluster_ids, known.directions
    else:
        stored = open_features(storage, clustering.embedding_folder)
        numbers, directions = _mean_directions(stored, members)
        if known is not None and changed is not None:
            kept = ~np.isin(known.cluster_ids, list(changed))
            numbers = np.concatenate([known.cluster_ids[kept], numbers])
            directions = np.concatenate([known.directions[kept], directions])
    centers = Centers(
        revision=clustering.revision,
        images=clustering.image_count,
        folder=clustering.embedding_folder,
        cluster_ids=numbers,
        directions=directions,
    )
    _centers.add(clustering.id, centers)
    return centers


def _mean_directions(
    stored: StoredFeatures, members: Members
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Clusters in groups whose sums fit the memory; the features of each in the file's order."""
    rows = stored.all_rows_of(members.hashes)
    order = np.argsort(rows, kind="stable")
    cluster_ids, number = np.unique(members.cluster_ids[order], return_inverse=True)
    rows = rows[order]
    directions = np.empty((len(cluster_ids), stored.dim), dtype=np.float32)
    size = max(1, _SUM_BYTES // (8 * stored.dim))
    for first in range(0, len(cluster_ids), size):
        group = directions[first : first + size]
        sums = np.zeros(group.shape, dtype=np.float64)
        chosen = np.flatnonzero((number >= first) & (number < first + size))
        for part in row_chunks(len(chosen)):
            some = chosen[part][np.argsort(number[chosen[part]], kind="stable")]
            targets, starts = np.unique(number[some] - first, return_index=True)
            units = unit_rows(stored.features[rows[some]])
            sums[targets] += np.add.reduceat(units, starts, axis=0)
        group[:] = unit_rows(sums)
    return cluster_ids, directions
