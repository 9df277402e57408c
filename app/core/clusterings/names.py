"""Clusters of a model version as users have edited them.

A version never changes, so its manifest keeps the initial names. Names that users gave since, and
merges, are in the clustering of its training.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import merges_of
from app.core.platform.tables import Cluster, ClusteringOperation, ModelVersion

Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ModelClusters:
    """The outputs of a model as users have named and merged them."""

    names: list[str]  # by output; merged outputs have the name of their cluster
    cluster_ids: list[int]  # the cluster of each output: its own number unless it was merged

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def outputs(self) -> list[int]:
        """The output that has the probability of all outputs of the same cluster."""
        first: dict[int, int] = {}
        for output, cluster_id in enumerate(self.cluster_ids):
            first.setdefault(cluster_id, output)
        return [
            cluster_id if cluster_id < len(self) else first[cluster_id]
            for cluster_id in self.cluster_ids
        ]

    @cached_property
    def any_merged(self) -> bool:
        return self.outputs != list(range(len(self)))

    def merge(self, probabilities: Probabilities) -> Probabilities:
        """Adds up the probabilities (C,) or (N, C) of merged outputs; the others of a merge get
        0."""
        if not self.any_merged:
            return probabilities
        merged = np.zeros_like(probabilities)
        np.add.at(merged.T, self.outputs, probabilities.T)
        return merged

    @property
    def merges(self) -> list[list[int]]:
        """The outputs of each cluster that has several, the one with their probability first."""
        members: dict[int, list[int]] = {}
        for number, output in enumerate(self.outputs):
            members.setdefault(output, [output])
            if number != output:
                members[output].append(number)
        return [group for group in members.values() if len(group) > 1]


def current_clusters(
    session: Session, version: ModelVersion, clustering_id: str | None = None
) -> ModelClusters:
    """As edited in this clustering by the version, or in that of its training."""
    edited = clustering_id or version.clustering_id
    names = [str(cluster["label"]) for cluster in version.manifest["clusters"]]
    if edited is None:
        return ModelClusters(names=names, cluster_ids=list(range(len(names))))
    rows = session.execute(
        select(Cluster.cluster_id, Cluster.label, Cluster.active).where(
            Cluster.clustering_id == edited
        )
    ).all()
    labels = {row.cluster_id: row.label for row in rows}
    inactive = {row.cluster_id for row in rows if not row.active}
    into = read_merges(session, edited) if inactive else {}
    cluster_ids = [follow_merges(number, into) for number in range(len(names))]
    return ModelClusters(
        names=[labels.get(to, name) for to, name in zip(cluster_ids, names, strict=True)],
        cluster_ids=cluster_ids,
    )


def read_merges(session: Session, clustering_id: str) -> dict[int, int]:
    """Maps each merged cluster to the cluster that it was merged into."""
    edits = session.scalars(
        select(ClusteringOperation)
        .where(
            ClusteringOperation.clustering_id == clustering_id,
            ClusteringOperation.kind.in_(("merge", "adopt")),
            ClusteringOperation.undone_by.is_(None),
        )
        .order_by(ClusteringOperation.revision)
    )
    return {
        int(source): int(merge["into"])
        for edit in edits
        for merge in merges_of(edit)
        for source in merge["cluster_ids"]
        if source != merge["into"]
    }


def follow_merges(number: int, into: dict[int, int]) -> int:
    while number in into:
        number = into[number]
    return number
