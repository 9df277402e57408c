"""Finds the clustering that new images of a dataset are added to, and where its edits put them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import merges_of, splits_of
from app.core.platform.tables import Clustering, ClusteringOperation, Dataset


def find_extendable(
    session: Session, dataset: Dataset, model_name: str, version: int
) -> Clustering | None:
    """The clustering of the dataset by this version: the current one if possible, or the newest."""
    return session.scalar(
        select(Clustering)
        .where(
            Clustering.dataset_id == dataset.id,
            Clustering.model_name == model_name,
            Clustering.model_version == version,
        )
        .order_by((Clustering.id == dataset.current_clustering_id).desc(), Clustering.id.desc())
        .limit(1)
    )


def find_targets(session: Session, clustering: Clustering, n_outputs: int) -> list[list[int]]:
    """The clusters that each output of the model is in now: more than one after a split."""
    found = [[output] for output in range(n_outputs)]
    edits = session.scalars(
        select(ClusteringOperation)
        .where(
            ClusteringOperation.clustering_id == clustering.id,
            ClusteringOperation.kind.in_(("merge", "split", "adopt")),
            ClusteringOperation.undone_by.is_(None),
        )
        .order_by(ClusteringOperation.revision)
    )
    for edit in edits:
        for output, clusters in enumerate(found):
            found[output] = _after(edit, clusters)
    return found


def _after(edit: ClusteringOperation, clusters: list[int]) -> list[int]:
    for merge in merges_of(edit):
        merged, into = merge["cluster_ids"], merge["into"]
        clusters = list(dict.fromkeys(into if each in merged else each for each in clusters))
    for split in splits_of(edit):
        if split["cluster_id"] in clusters:
            clusters = clusters + split["new"]
    return clusters
