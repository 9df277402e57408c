"""Search of a dataset: its images by their similarity to a vector of features."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.members import read_members
from app.core.clusterings.rows import get_cluster, get_clustering
from app.core.datasets.features import MILLION, StoredFeatures, computing, open_features
from app.core.datasets.neighbors import Neighbor, feature_folders, nearest_images
from app.core.datasets.rows import get_dataset
from app.core.platform.db import Database
from app.core.platform.errors import FeaturesMissing, InvalidRequest
from app.core.platform.tables import Assignment, Cluster, Clustering, Dataset, Image
from app.core.storage import Storage

Vector = npt.NDArray[np.float32]


class FoundImage(NamedTuple):
    image_id: str
    name: str
    similarity: float
    cluster_id: int | None  # None if the clustering does not have the image, or excludes it
    label: str | None  # of the cluster


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """The images that a search compares, by the features of one clustering."""

    dataset_id: str
    folder: str  # of the features
    clustering_id: str | None = None  # gives the clusters of what is found
    cluster_id: int | None = None  # only images of this cluster
    model: tuple[str, int] | None = None  # name and version; its backbone gave the features


def open_space(
    session: Session,
    tenant: str,
    dataset_id: str,
    clustering_id: str | None = None,
    cluster_id: int | None = None,
) -> SearchSpace:
    """By the features of this clustering, or of the current one, or of the newest."""
    dataset = get_dataset(session, tenant, dataset_id)
    clustering = _clustering(session, tenant, dataset, clustering_id)
    if clustering is None or clustering.embedding_folder is None:
        if cluster_id is not None:
            raise InvalidRequest.field("cluster_id", "the dataset has no clustering yet")
        folders = feature_folders(session, dataset.id)
        if not folders:
            raise FeaturesMissing(
                f"The dataset {dataset.id} has no features to search. Cluster it first."
            )
        return SearchSpace(dataset_id=dataset.id, folder=folders[0])
    if cluster_id is not None:
        get_cluster(session, clustering, cluster_id)
    return SearchSpace(
        dataset_id=dataset.id,
        folder=clustering.embedding_folder,
        clustering_id=clustering.id,
        cluster_id=cluster_id,
        model=(clustering.model_name, clustering.model_version),
    )


def stored_vector(storage: Storage, space: SearchSpace, sha256: str) -> Vector | None:
    """The features of an image (D,); None if the space does not have them."""
    with computing():
        stored = open_features(storage, space.folder)
        row = stored.row_of(sha256)
        return None if row is None else np.array(stored.features[row])


def search_space(
    db: Database,
    storage: Storage,
    space: SearchSpace,
    vector: Vector,
    limit: int,
    *,
    without: str | None = None,
) -> list[FoundImage]:
    """The images nearest to a vector (D,), most similar first, then by id; without this image."""
    count = limit + (without is not None)
    with computing():
        stored = open_features(storage, space.folder)
        if len(vector) != stored.dim:
            raise FeaturesMissing(
                f"The features of the dataset have {stored.dim} numbers, those of the model "
                f"{len(vector)}. Cluster the dataset again."
            )
        with db.read() as session:
            if space.cluster_id is not None:
                found = _nearest_members(session, space, stored, vector, count)
            else:
                scored = stored.nearest(vector, count)
                found = nearest_images(session, space.dataset_id, stored, scored, count)
            shown = [one for one in found if one.image_id != without][:limit]
            return _with_clusters(session, space, shown)


def _clustering(
    session: Session, tenant: str, dataset: Dataset, clustering_id: str | None
) -> Clustering | None:
    if clustering_id is not None:
        given = get_clustering(session, tenant, clustering_id)
        if given.dataset_id != dataset.id:
            raise InvalidRequest.field(
                "clustering_id", f"{clustering_id} is a clustering of another dataset"
            )
        return given
    if dataset.current_clustering_id is not None:
        return session.get(Clustering, dataset.current_clustering_id)
    return session.scalar(
        select(Clustering)
        .where(Clustering.dataset_id == dataset.id)
        .order_by(Clustering.id.desc())
        .limit(1)
    )


def _nearest_members(
    session: Session, space: SearchSpace, stored: StoredFeatures, vector: Vector, limit: int
) -> list[Neighbor]:
    """Compares all images of the cluster."""
    assert space.clustering_id is not None
    assert space.cluster_id is not None
    members = read_members(session, space.clustering_id, [space.cluster_id])
    rows = stored.rows_of(members.hashes)
    ids, rows = members.ids[rows >= 0], rows[rows >= 0]
    (cosines,) = stored.cosines(vector[None], rows)
    best = np.lexsort((ids, -cosines))[:limit]
    similarity = {
        image_id.decode(): cosine / MILLION
        for image_id, cosine in zip(ids[best].tolist(), cosines[best].tolist(), strict=True)
    }
    columns = select(Image.id, Image.name).where(Image.id.in_(similarity))
    names = {row.id: row.name for row in session.execute(columns)}
    return [
        Neighbor(image_id, names[image_id], cosine)
        for image_id, cosine in similarity.items()
        if image_id in names
    ]


def _with_clusters(session: Session, space: SearchSpace, found: list[Neighbor]) -> list[FoundImage]:
    clusters: dict[str, tuple[int, str]] = {}
    if space.clustering_id is not None:
        rows = session.execute(
            select(Assignment.image_id, Cluster.cluster_id, Cluster.label)
            .join(
                Cluster,
                (Cluster.clustering_id == Assignment.clustering_id)
                & (Cluster.cluster_id == Assignment.cluster_id),
            )
            .where(
                Assignment.clustering_id == space.clustering_id,
                Assignment.image_id.in_([one.image_id for one in found]),
            )
        )
        clusters = {row.image_id: (row.cluster_id, row.label) for row in rows}
    return [FoundImage(*one, *clusters.get(one.image_id, (None, None))) for one in found]
