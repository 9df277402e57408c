"""Current names of the clusters of a model version.

A version never changes, so its manifest keeps the initial names. Names that users gave since are in
the clustering of its training.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.platform.tables import Cluster, ClusteringOperation, ModelVersion


def current_names(session: Session, version: ModelVersion) -> list[str]:
    """The name of each cluster of the model; a merged one has the name of the merged cluster."""
    names = [str(cluster["label"]) for cluster in version.manifest["clusters"]]
    if version.clustering_id is None:
        return names
    rows = session.execute(
        select(Cluster.cluster_id, Cluster.label, Cluster.active).where(
            Cluster.clustering_id == version.clustering_id
        )
    ).all()
    labels = {row.cluster_id: row.label for row in rows}
    inactive = {row.cluster_id for row in rows if not row.active}
    into = _merged(session, version.clustering_id) if inactive else {}
    return [labels.get(_follow(number, inactive, into), name) for number, name in enumerate(names)]


def _merged(session: Session, clustering_id: str) -> dict[int, int]:
    """Maps each merged cluster to the cluster that it was merged into."""
    merges = session.scalars(
        select(ClusteringOperation)
        .where(
            ClusteringOperation.clustering_id == clustering_id,
            ClusteringOperation.kind == "merge",
            ClusteringOperation.undone_by.is_(None),
        )
        .order_by(ClusteringOperation.revision)
    )
    return {
        int(source): int(merge.arguments["into"])
        for merge in merges
        for source in merge.arguments["cluster_ids"]
        if source != merge.arguments["into"]
    }


def _follow(number: int, inactive: set[int], into: dict[int, int]) -> int:
    while number in inactive and number in into:
        number = into[number]
    return number
