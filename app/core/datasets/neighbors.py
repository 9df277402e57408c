"""The images of a dataset that are most similar to an image, by stored features."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.datasets.features import (
    MILLION,
    Rows,
    ScoredRows,
    StoredFeatures,
    computing,
    open_features,
)
from app.core.datasets.rows import get_image
from app.core.platform.db import Database
from app.core.platform.errors import FeaturesMissing
from app.core.platform.tables import Clustering, Dataset, Embedding, Image
from app.core.storage import Storage

_MAX_FOLDERS = 8  # embeddings to search for the image
_MIN_LOOKUP = 64  # hashes per query


class Neighbor(NamedTuple):
    image_id: str
    name: str
    similarity: float


def image_neighbors(
    db: Database, storage: Storage, tenant: str, image_id: str, limit: int
) -> list[Neighbor]:
    """The most similar images, without the image itself; of equally similar ones the one with the
    lower id is first."""
    with computing():
        with db.read() as session:
            image = get_image(session, tenant, image_id)
            folders = feature_folders(session, image.dataset_id)
        stored, row = features_of(storage, folders, image)
        scored = stored.nearest(stored.features[row], limit + 1)
        with db.read() as session:
            found = nearest_images(session, image.dataset_id, stored, scored, limit + 1)
    return [one for one in found if one.image_id != image.id][:limit]


def nearest_images(
    session: Session, dataset_id: str, stored: StoredFeatures, scored: ScoredRows, limit: int
) -> list[Neighbor]:
    """The images of the dataset in the order of the cosines of their features."""
    dataset = session.get_one(Dataset, dataset_id)
    found: dict[str, Neighbor] = {}
    for rows, cosines in _by_cosine(scored, max(_MIN_LOOKUP, 2 * limit)):
        best = sorted(found.values(), key=_rank)[:limit]
        # Rows of deleted images have no image, and those with equal cosines are ordered by id.
        if len(best) == limit and best[-1].similarity > cosines[0] / MILLION:
            break
        similarity = dict(zip(_hex(stored, rows), (cosines / MILLION).tolist(), strict=True))
        images = session.execute(
            select(Image.id, Image.name, Image.sha256).where(
                Image.dataset_id == dataset_id,
                Image.sha256.in_(similarity),
                Image.position < dataset.end_position,
            )
        )
        found |= {row.id: Neighbor(row.id, row.name, similarity[row.sha256]) for row in images}
    return sorted(found.values(), key=_rank)[:limit]


def _by_cosine(scored: ScoredRows, size: int) -> Iterator[ScoredRows]:
    """Rows from the highest cosine to the lowest, in parts."""
    order = np.argsort(-scored.cosines, kind="stable")
    parts = (order[start : start + size] for start in range(0, len(order), size))
    return (ScoredRows(scored.rows[part], scored.cosines[part]) for part in parts)


def _rank(neighbor: Neighbor) -> tuple[float, str]:
    return -neighbor.similarity, neighbor.image_id


def _hex(stored: StoredFeatures, rows: Rows) -> list[str]:
    return [row.tobytes().hex() for row in stored.hashes[rows]]


def feature_folders(session: Session, dataset_id: str) -> list[str]:
    """Folders of the dataset's features: those of its current clustering, then the newest."""
    current = session.scalar(
        select(Clustering.embedding_folder)
        .join(Dataset, Dataset.current_clustering_id == Clustering.id)
        .where(Dataset.id == dataset_id)
    )
    newest = session.scalars(
        select(Embedding.folder)
        .where(Embedding.dataset_id == dataset_id)
        .order_by(Embedding.created_at.desc(), Embedding.folder)
        .limit(_MAX_FOLDERS)
    )
    return list(dict.fromkeys([*([current] if current else []), *newest]))


def features_of(
    storage: Storage, folders: Sequence[str], image: Image
) -> tuple[StoredFeatures, int]:
    """The first features that have a row of the image, and the row."""
    for folder in folders:
        try:
            stored = open_features(storage, folder)
        except FeaturesMissing:
            continue
        row = stored.row_of(image.sha256)
        if row is not None:
            return stored, row
    raise FeaturesMissing(
        f"No features of image {image.id} are stored. Cluster or predict the dataset "
        f"{image.dataset_id}."
    )
