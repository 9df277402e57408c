"""The images that a model version was trained on, by their similarity to new ones."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from app.core.datasets.features import ScoredRows, StoredFeatures, computing, open_features
from app.core.datasets.neighbors import Neighbor, nearest_images
from app.core.platform.db import Database
from app.core.platform.errors import FeaturesMissing
from app.core.platform.tables import Clustering
from app.core.storage import Storage

_COSINE_BYTES = 64 * 1024**2  # that are held at once


def nearest_training_images(
    db: Database,
    storage: Storage,
    clustering_id: str | None,
    vectors: npt.NDArray[np.float32],
    limit: int,
) -> list[list[Neighbor]] | None:
    """For each vector of features (V, D), the nearest images of the dataset that the clustering of
    the training has; None if that clustering or its features are gone."""
    with computing():
        with db.read() as session:
            clustering = session.get(Clustering, clustering_id) if clustering_id else None
        stored = _open(storage, clustering, vectors.shape[1])
        if clustering is None or stored is None:
            return None
        found = []
        for scored in _nearest(stored, vectors, limit):
            with db.read() as session:
                found.append(nearest_images(session, clustering.dataset_id, stored, scored, limit))
        return found


def _open(storage: Storage, clustering: Clustering | None, dim: int) -> StoredFeatures | None:
    if clustering is None:
        return None
    try:
        stored = open_features(storage, clustering.embedding_folder)
    except FeaturesMissing:
        return None
    return stored if stored.dim == dim else None


def _nearest(
    stored: StoredFeatures, vectors: npt.NDArray[np.float32], limit: int
) -> Iterator[ScoredRows]:
    if stored.index is not None:
        yield from (stored.nearest(vector, limit) for vector in vectors)
        return
    rows = np.arange(len(stored.features))
    for part in _parts(len(vectors), len(rows)):  # the features are read once for many vectors
        yield from (ScoredRows(rows, cosines) for cosines in stored.cosines(vectors[part]))


def _parts(vectors: int, rows: int) -> Iterator[slice]:
    size = max(1, _COSINE_BYTES // max(1, 4 * rows))
    return (slice(start, start + size) for start in range(0, vectors, size))
