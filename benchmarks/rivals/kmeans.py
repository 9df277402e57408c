"""k-means on L2-normalized features."""

import numpy as np

from benchmarks.rivals.base import Features, Fitted, Labels, check, one_core
from temi.analysis.kmeans import kmeans
from temi.standardize import unit_rows


class KMeans:
    """k-means (Lloyd 1957/1982) with k-means++ starts (Arthur and Vassilvitskii 2007).

    Uses the project's baseline: rows of length one and the best of ten starts. A new row gets the
    cluster with the nearest center; nothing is simplified.
    """

    name = "k-means"

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        check(features, n_clusters)
        labels = kmeans(features, n_clusters, seed=seed)
        found, compact = np.unique(labels, return_inverse=True)  # without empty clusters
        centers = np.zeros((len(found), features.shape[1]))
        np.add.at(centers, compact, unit_rows(features))
        centers /= np.bincount(compact)[:, None]

        def predict(new: Features) -> Labels:
            # The nearest center: the squared norm of the row itself is the same for all centers.
            distances = (centers**2).sum(axis=1) - 2.0 * unit_rows(new) @ centers.T  # (M, C)
            return np.asarray(found[distances.argmin(axis=1)], dtype=np.int64)

        return Fitted(labels=labels, predict=predict)
