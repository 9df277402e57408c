"""The k-means baseline on L2-normalized features."""

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.errors import InvalidConfig
from temi.standardize import chunks, unit_rows

# Best of ten k-means++ starts, so that the baseline does not suffer from a bad start.
N_INIT = 10
# Larger sets are fitted on a sample of this many rows, or this many per cluster: more rows hardly
# change the centers, but increase the time of ten starts and the memory of the copy.
FIT_ROWS = 20_000
FIT_ROWS_PER_CLUSTER = 50


def kmeans(
    features: npt.NDArray[np.floating], n_clusters: int, *, seed: int = 0
) -> npt.NDArray[np.int64]:
    """Return the cluster id of each row: (N,).

    Rows are L2-normalized first, so that k-means uses the same cosine geometry as the mined
    neighbors.
    """
    n = features.shape[0]
    if not 1 <= n_clusters <= n:
        raise InvalidConfig("n_clusters", f"must be between 1 and the number of images, {n}")
    size = max(FIT_ROWS, FIT_ROWS_PER_CLUSTER * n_clusters)
    if n <= size:
        return np.asarray(_fit(unit_rows(features), n_clusters, seed).labels_, dtype=np.int64)
    sample = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    fitted = _fit(unit_rows(features[sample]), n_clusters, seed)
    found = np.empty(n, dtype=np.int64)
    for rows in chunks(n):
        found[rows] = fitted.predict(unit_rows(features[rows]))
    return found


def _fit(rows: npt.NDArray[np.float32], n_clusters: int, seed: int) -> KMeans:
    # One core: threads add their parts of a center in the order in which they finish, which
    # differs from run to run.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # With fewer distinct rows than clusters, some clusters stay empty; that is no error here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The rows are already a copy, so k-means may center them in place.
        return KMeans(n_clusters, n_init=N_INIT, random_state=seed, copy_x=False).fit(rows)
