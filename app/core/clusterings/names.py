"""What people call the clusters of a model version now.

A version never changes, so its manifest keeps the names it was born with. The names that people
gave since live in the clustering that it made.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.platform.tables import Cluster, ClusteringOperation, ModelVersion


def current_names(session: Session, version: ModelVersion) -> list[str]:
    """By number of the model's cluster; one that was merged goes by the name of where it went."""
    names = [str(cluster["label"]) for cluster in version.manifest["clusters"]]
    if version.clustering_id is None:
        return names
    rows = session.execute(
        select(Cluster.cluster_id, Cluster.label, Cluster.active).where(
            Cluster.clustering_id == version.clustering_id
        )
    ).all()
    labels = {row.cluster_id: row.label for row in rows}
    gone = {row.cluster_id for row in rows if not row.active}
    into = _merged(session, version.clustering_id) if gone else {}
    return [labels.get(_end_of(number, gone, into), name) for number, name in enumerate(names)]


def _merged(session: Session, clustering_id: str) -> dict[int, int]:
    """From each cluster that was merged to the one that took its images."""
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


def _end_of(number: int, gone: set[int], into: dict[int, int]) -> int:
    while number in gone and number in into:
        number = into[number]
    return number
