"""Centers of clusters: mean directions of the features of their images."""

from collections.abc import Sequence

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


def nearest_center(
    features: npt.NDArray[np.floating],
    rows: npt.NDArray[np.integer],
    members: Sequence[npt.NDArray[np.integer]],
) -> npt.NDArray[np.int64]:
    """Return, for each of these rows, the group of rows with the nearest center: (M,)."""
    centers = np.zeros((len(members), features.shape[1]), dtype=np.float64)
    for group, own in enumerate(members):
        for part in chunks(len(own)):
            centers[group] += _unit(features[own[part]]).sum(axis=0)
    centers = _unit(centers)
    nearest = np.empty(len(rows), dtype=np.int64)
    for part in chunks(len(rows)):
        nearest[part] = (_unit(features[rows[part]]) @ centers.T).argmax(axis=1)
    return nearest


def _unit(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return rows of length one; zero rows stay zero."""
    exact = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(exact, axis=1, keepdims=True)
    unit: npt.NDArray[np.float64] = exact / np.where(length > 0, length, 1.0)
    return unit
