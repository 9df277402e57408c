"""The distance of every image from the center of its cluster."""

import numpy as np
import numpy.typing as npt

from temi.standardize import chunks


def center_distances(
    features: npt.NDArray[np.floating], assigned: npt.NDArray[np.integer], n_clusters: int
) -> npt.NDArray[np.float32]:
    """Return 1 - cosine to the mean direction of the cluster: (N,); outliers have large values.

    Reads the features twice, in chunks.
    """
    centers = np.zeros((n_clusters, features.shape[1]), dtype=np.float64)
    for rows in chunks(len(features)):
        np.add.at(centers, assigned[rows], _unit(features[rows]))
    centers = _unit(centers)
    distances = np.empty(len(features), dtype=np.float32)
    for rows in chunks(len(features)):
        cosines = np.einsum("nd,nd->n", _unit(features[rows]), centers[assigned[rows]])
        distances[rows] = 1.0 - np.clip(cosines, -1.0, 1.0)
    return distances


def _unit(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return rows of length one; zero rows stay zero."""
    exact = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(exact, axis=1, keepdims=True)
    unit: npt.NDArray[np.float64] = exact / np.where(length > 0, length, 1.0)
    return unit
