"""Inserts clusterings with any history into the tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import insert, select

from app.core.clusterings.current import set_first
from app.core.clusterings.rows import Assigned, add_assignments, add_clusters, refresh_clusters
from app.core.datasets.rows import create_dataset
from app.core.platform.ids import new_id
from app.core.platform.tables import (
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    Dataset,
    Image,
)
from app.core.runtime import Runtime


@dataclass(frozen=True)
class State:
    """A clustering at a revision: the cluster of each image, label and state of each cluster."""

    places: tuple[int, ...]
    clusters: dict[int, tuple[str, bool]]


def add_images(runtime: Runtime, count: int, **columns: Any) -> Dataset:
    """A dataset with that many images; a column is the same for all, or a list."""
    with runtime.db.write() as session:
        dataset = create_dataset(session, tenant="default", name="Holiday photos")
        dataset.status = "ready"
        dataset.end_position = dataset.image_count = count
        given = {name: c if isinstance(c, list) else [c] * count for name, c in columns.items()}
        rows = [
            {
                "id": new_id("img"),
                "dataset_id": dataset.id,
                "position": position,
                "name": f"image {position}.png",
                "sha256": f"{position:064x}",
                "width": 4,
                "height": 3,
                "format": "PNG",
                "bytes": 10,
                **{name: column[position] for name, column in given.items()},
            }
            for position in range(count)
        ]
        session.execute(insert(Image), rows)
    return dataset


def store_history(runtime: Runtime, dataset_id: str, states: Sequence[State]) -> Clustering:
    """Stores the last state as the current one, and each step as an operation."""
    last = states[-1]
    clustering = Clustering(
        id=new_id("cl"),
        tenant="default",
        dataset_id=dataset_id,
        model_name="photos",
        model_version=2,
        n_clusters=len(last.clusters),
        image_count=len(last.places),
        revision=len(states),
        metrics={},
    )
    with runtime.db.write() as session:
        query = select(Image.id).where(Image.dataset_id == dataset_id).order_by(Image.position)
        ids = list(session.scalars(query))
        session.add(clustering)
        session.flush()
        add_clusters(session, clustering.id, sorted(last.clusters))
        for number, (label, active) in last.clusters.items():
            cluster = session.get_one(Cluster, (clustering.id, number))
            cluster.label, cluster.active = label, active
        rows = zip(ids, last.places, strict=False)
        sure = (1 - row / (2 * len(ids)) for row in range(len(ids)))
        add_assignments(
            session,
            clustering.id,
            (
                Assigned(i, place, p, p / 2, 1 - p)
                for (i, place), p in zip(rows, sure, strict=False)
            ),
        )
        session.flush()
        refresh_clusters(session, clustering.id)
        set_first(session, clustering)
        for revision, (old, new) in enumerate(pairwise(states), start=2):
            session.execute(
                insert(ClusteringOperation), _operation(clustering.id, revision, old, new)
            )
            if changes := _changes(clustering.id, revision, ids, old, new):
                session.execute(insert(AssignmentChange), changes)
    return clustering


def _operation(clustering_id: str, revision: int, old: State, new: State) -> dict[str, Any]:
    touched = [n for n in new.clusters if new.clusters[n] != old.clusters.get(n)]
    before = {}
    for number in touched:
        label, active = old.clusters.get(number, (None, False))
        before[str(number)] = {"label": label, "active": active}
    return {
        "clustering_id": clustering_id,
        "revision": revision,
        "kind": "move",
        "arguments": {},
        "clusters_before": before,
    }


def _changes(
    clustering_id: str, revision: int, ids: Sequence[str], old: State, new: State
) -> list[dict[str, Any]]:
    return [
        {"clustering_id": clustering_id, "image_id": i, "revision": revision, "before": before}
        for i, before, after in zip(ids, old.places, new.places, strict=False)
        if before != after
    ]
