"""A clustering in the database with features in the storage, made without any model."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import Operation, Split, apply_operation
from app.core.clusterings.rows import Assigned, add_assignments, add_clusters, refresh_clusters
from app.core.clusterings.splitting import plan_split
from app.core.datasets.rows import create_dataset, fingerprint, get_dataset
from app.core.platform.ids import new_id
from app.core.platform.tables import (
    EXCLUDED,
    Assignment,
    Cluster,
    Clustering,
    ClusteringOperation,
    Dataset,
    Image,
)
from app.core.runtime import Runtime

FOLDER = "embeddings/test"
TENANT = "t"


@dataclass(frozen=True, kw_only=True)
class Stored:
    clustering_id: str
    dataset_id: str
    images: list[str]  # ids, in the order of the upload


def store(runtime: Runtime, places: list[int], *, n_clusters: int | None = None) -> Stored:
    """Image i is in cluster `places[i]`."""
    with runtime.db.write() as session:
        dataset = create_dataset(session, tenant=TENANT, name="d")
        ids = _add_images(session, dataset, len(places))
    return _add_clustering(runtime, dataset.id, ids, places, n_clusters)


def retrain(
    runtime: Runtime, stored: Stored, places: list[int], *, n_clusters: int | None = None
) -> Stored:
    """Another clustering of the dataset; more places than it has images: they are added first."""
    with runtime.db.write() as session:
        dataset = get_dataset(session, TENANT, stored.dataset_id, lock=True)
        added = _add_images(session, dataset, len(places) - len(stored.images))
    return _add_clustering(runtime, stored.dataset_id, [*stored.images, *added], places, n_clusters)


def append(runtime: Runtime, stored: Stored, count: int) -> Stored:
    """More images of the dataset, which no clustering has yet."""
    with runtime.db.write() as session:
        dataset = get_dataset(session, TENANT, stored.dataset_id, lock=True)
        added = _add_images(session, dataset, count)
    return replace(stored, images=[*stored.images, *added])


def _add_images(session: Session, dataset: Dataset, count: int) -> list[str]:
    start = dataset.end_position or 0
    ids = [new_id("img") for _ in range(count)]
    for position, image_id in enumerate(ids, start=start):
        session.add(
            Image(
                id=image_id,
                dataset_id=dataset.id,
                position=position,
                name=f"{position}.png",
                sha256=sha256(position),
                width=1,
                height=1,
                format="PNG",
                bytes=1,
            )
        )
    dataset.end_position = start + count
    dataset.image_count = (dataset.image_count or 0) + count
    session.flush()
    dataset.fingerprint = fingerprint(session, dataset.id)
    return ids


def _add_clustering(
    runtime: Runtime, dataset_id: str, ids: list[str], places: list[int], n_clusters: int | None
) -> Stored:
    count = n_clusters or max(places) + 1
    with runtime.db.write() as session:
        clustering = Clustering(
            id=new_id("cl"),
            tenant=TENANT,
            dataset_id=dataset_id,
            dataset_fingerprint=session.get_one(Dataset, dataset_id).fingerprint,
            embedding_folder=FOLDER,
            model_name="m",
            model_version=1,
            n_clusters=count,
            image_count=len(places),
            metrics={},
        )
        session.add(clustering)
        session.flush()
        add_clusters(session, clustering.id, range(count))
        sure = np.linspace(0.95, 0.35, len(places)).tolist()
        rows = (
            Assigned(image_id, place, sure[i], sure[i] / 2, 1 - sure[i])
            for i, (image_id, place) in enumerate(zip(ids, places, strict=True))
        )
        add_assignments(session, clustering.id, rows)
        refresh_clusters(session, clustering.id)
        return Stored(clustering_id=clustering.id, dataset_id=dataset_id, images=ids)


def sha256(position: int) -> str:
    return hashlib.sha256(str(position).encode()).hexdigest()


def save_features(
    runtime: Runtime, features: npt.NDArray[np.float32], positions: list[int], folder: str = FOLDER
) -> None:
    """Row i is of the image at `positions[i]`."""
    hashes = [list(bytes.fromhex(sha256(position))) for position in positions]
    for name, array in (("features", features), ("hashes", np.array(hashes, dtype=np.uint8))):
        with runtime.storage.writing(f"{folder}/{name}.npy") as file:
            np.save(file, array)


def edit(
    runtime: Runtime, stored: Stored, operation: Operation, revision: int | None = None
) -> ClusteringOperation:
    """Applies an operation like the API; at any revision if none is given."""
    revisions = None if revision is None else {revision}
    if isinstance(operation, Split):
        plan = plan_split(
            runtime.db,
            runtime.storage,
            TENANT,
            stored.clustering_id,
            revisions=revisions,
            cluster_id=operation.cluster_id,
            parts=operation.parts,
            seed=operation.seed,
        )
        operation = Split(**{**vars(operation), "plan": plan})
    with runtime.db.write() as session:
        return apply_operation(
            session, TENANT, stored.clustering_id, operation, revisions=revisions
        )


def places(runtime: Runtime, stored: Stored) -> dict[str, int]:
    """The cluster of each image."""
    with runtime.db.read() as session:
        rows = session.execute(
            select(Assignment.image_id, Assignment.cluster_id).where(
                Assignment.clustering_id == stored.clustering_id
            )
        )
        return {image_id: cluster_id for image_id, cluster_id in rows}


def clusters(runtime: Runtime, stored: Stored) -> dict[int, tuple[str, bool]]:
    """Labels and states of the clusters; also checks sizes and means."""
    where = places(runtime, stored)
    with runtime.db.read() as session:
        rows = session.scalars(
            select(Cluster)
            .where(Cluster.clustering_id == stored.clustering_id)
            .order_by(Cluster.cluster_id)
        ).all()
        for row in rows:
            members = sum(place == row.cluster_id for place in where.values())
            assert row.size == members, f"cluster {row.cluster_id}"
            assert (row.mean_probability is None) == (members == 0)
            assert row.active or members == 0
        found = {row.cluster_id: (row.label, row.active) for row in rows}
    active = {number for number, (_, is_active) in found.items() if is_active}
    assert set(where.values()) <= active | {EXCLUDED}
    return found
