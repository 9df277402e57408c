"""Coarser groups of a clustering: its clusters joined by similarity, without a new training.

The merges are kept for the next requests, until the clustering changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sqlalchemy import Row, select

from app.core.clusterings.rows import get_clustering
from app.core.clusterings.similarity import (
    Centers,
    clustering_state,
    current_centers,
    read_center_changes,
)
from app.core.datasets.features import computing
from app.core.platform.byte_cache import ByteCache
from app.core.platform.db import Database
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import Cluster
from app.core.storage import Storage
from temi.analysis.hierarchy import Merge, cut, merge_tree

MAX_CLUSTERS = 1_000  # the merges of more take longer than a request should
_MERGE_BYTES = 200  # of a merge in memory

ClusterRow = Row[int, str, bool, int]  # id, label, named, size


class ClusterGroup(NamedTuple):
    cluster_ids: list[int]  # those that a person has named first, then the largest first
    size: int
    label: str  # of the first


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    revision: int
    groups: list[ClusterGroup]  # largest first
    costs: list[float]  # of every merge, from single clusters to one group


@dataclass(frozen=True)
class _Merges:
    merges: list[Merge]

    @property
    def nbytes(self) -> int:
        return _MERGE_BYTES * (len(self.merges) + 1)


_kept = ByteCache[_Merges](8 * 1024**2)  # of 40 clusterings with 1,000 clusters


def group_clusters(
    db: Database, storage: Storage, tenant: str, clustering_id: str, n_groups: int
) -> Hierarchy:
    """So many groups of the clusters that have images."""
    with computing():
        with db.snapshot() as session:
            clustering = get_clustering(session, tenant, clustering_id)
            columns = select(Cluster.cluster_id, Cluster.label, Cluster.named, Cluster.size)
            filled = Cluster.clustering_id == clustering.id, Cluster.active, Cluster.size > 0
            rows = session.execute(columns.where(*filled).order_by(Cluster.cluster_id)).all()
            _check_counts(len(rows), n_groups)
            key = clustering_state(clustering)
            kept = _kept.get(key)
            changes = None if kept else read_center_changes(session, clustering)
        if changes is not None:
            centers = current_centers(storage, clustering, changes)
            kept = _Merges(_merges(centers, rows))
            _kept.add(key, kept)
    assert kept is not None
    groups = [
        _group([rows[at] for at in members]) for members in cut(kept.merges, len(rows), n_groups)
    ]
    groups.sort(key=lambda group: (-group.size, min(group.cluster_ids)))
    costs = [merge.cost for merge in kept.merges]
    return Hierarchy(revision=clustering.revision, groups=groups, costs=costs)


def _check_counts(n_clusters: int, n_groups: int) -> None:
    if n_clusters > MAX_CLUSTERS:
        raise InvalidRequest(
            f"The clustering has {n_clusters:,} clusters with images; at most {MAX_CLUSTERS:,} can "
            "be grouped. Merge some of them, or cluster the dataset into fewer clusters."
        )
    if n_groups > n_clusters:
        raise InvalidRequest.field(
            "n_groups", f"must be at most {n_clusters}, the number of clusters with images"
        )


def _merges(centers: Centers, rows: Sequence[ClusterRow]) -> list[Merge]:
    """The merges of the clusters in these rows; a number is the position of a row."""
    order = np.argsort(centers.cluster_ids)
    found = order[np.searchsorted(centers.cluster_ids[order], [row.cluster_id for row in rows])]
    return merge_tree(centers.directions[found], [row.size for row in rows])


def _group(rows: Sequence[ClusterRow]) -> ClusterGroup:
    ordered = sorted(rows, key=lambda row: (not row.named, -row.size, row.cluster_id))
    ids = [row.cluster_id for row in ordered]
    return ClusterGroup(ids, sum(row.size for row in rows), ordered[0].label)
