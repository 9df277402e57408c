"""UMAP to ten dimensions, then a mixture of Gaussians."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.rivals.base import Features, Fitted, Labels, check, one_core
from temi.standardize import unit_rows

DIMENSIONS = 10
N_NEIGHBORS = 15
N_INIT = 3
DENSE_ROWS = 4096  # up to here UMAP computes all distances, one by one
SPECTRAL_ROWS = 50  # fewer rows start at random: the spectral start needs more rows than dimensions
REGULARIZATION = 1e-3  # added to the variances, so that a cluster of one image has a density


class UmapGmm:
    """UMAP (McInnes, Healy and Melville 2018), then a Gaussian mixture fitted by EM.

    The mixture on a manifold embedding follows N2D (McConville, Santos-Rodriguez, Piechocki and
    Craddock, ICPR 2020), which embeds the codes of an autoencoder; here the frozen features take
    the place of the codes. New rows are embedded by UMAP's own transform.
    """

    name = "UMAP + GMM"

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        check(features, n_clusters)
        reducer = _umap(len(features), seed)
        train = unit_rows(features)
        embedded = _quietly(reducer.fit_transform, _umap_input(train, train))  # (N, 10)
        mixture = _fit_mixture(embedded, n_clusters, seed)

        @one_core()
        def predict(new: Features) -> Labels:
            found = mixture.predict(_quietly(reducer.transform, _umap_input(unit_rows(new), train)))
            return np.asarray(found, dtype=np.int64)

        labels = np.asarray(mixture.predict(embedded), dtype=np.int64)
        return Fitted(labels=labels, predict=predict)


def _quietly(function: Callable[[Features], Features], rows: Features) -> Features:
    """Embed without the warnings about few images and a graph in several parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(rows), dtype=np.float64)


def _umap_input(rows: Features, train: Features) -> Features:
    """Return the cosine distances to the training rows if they are few, else the rows."""
    if len(train) > DENSE_ROWS:
        return rows
    distances = np.maximum(1.0 - rows @ train.T, 0.0)
    if rows is train:
        np.fill_diagonal(distances, 0.0)
    return np.asarray(distances)


def _umap(n_rows: int, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # of a part that needs TensorFlow
        # Here, because importing it takes seconds, and the other rivals do not need it.
        from umap import UMAP

    return UMAP(
        n_components=max(1, min(DIMENSIONS, n_rows - 2)),
        n_neighbors=max(2, min(N_NEIGHBORS, n_rows - 1)),
        min_dist=0.0,  # dense clusters, as the mixture wants them
        metric="precomputed" if n_rows <= DENSE_ROWS else "cosine",
        init="spectral" if n_rows >= SPECTRAL_ROWS else "random",
        random_state=seed,
        transform_seed=seed,
        n_jobs=1,  # with more, the result depends on the order of the threads
    )


def _fit_mixture(embedded: Features, n_clusters: int, seed: int) -> GaussianMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(
            n_clusters, n_init=N_INIT, reg_covar=REGULARIZATION, random_state=seed
        ).fit(embedded)
