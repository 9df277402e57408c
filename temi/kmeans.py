"""k-means on L2-normalized features: the baseline."""

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from temi.errors import InvalidConfig

# Best of ten k-means++ starts: a baseline that loses only because of one bad start proves nothing.
N_INIT = 10


def kmeans(
    features: npt.NDArray[np.floating], n_clusters: int, *, seed: int = 0
) -> npt.NDArray[np.int64]:
    """Cluster id of each row: (N,).

    Rows are L2-normalized first, so that k-means sees the same cosine geometry as the mined
    neighbors do.
    """
    n = features.shape[0]
    if not 1 <= n_clusters <= n:
        raise InvalidConfig("n_clusters", f"must be between 1 and the number of images, {n}")
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: some clusters stay empty, which is no fault here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(n_clusters, n_init=N_INIT, random_state=seed).fit(_unit_rows(features))
    return np.asarray(fitted.labels_, dtype=np.int64)


def _unit_rows(features: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """A copy with rows of length one; zero rows stay zero."""
    rows = np.array(features, dtype=np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows
