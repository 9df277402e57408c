"""Training in the informative subspace of the features.

Heads trained on z = V^T x are folded back to heads on x by w1 <- V w1: the result is the
ordinary architecture on all D dimensions, at a fraction of the cost of training there.
"""

import numpy as np
import numpy.typing as npt

from temi.standardize import Standardizer, chunks


def principal_directions(
    features: npt.NDArray[np.floating], standardizer: Standardizer, n_directions: int
) -> npt.NDArray[np.float32]:
    """Orthonormal directions of largest variance of the standardized features: (D, P)."""
    dim = features.shape[1]
    covariance = np.zeros((dim, dim))
    for rows in chunks(features.shape[0]):
        block = standardizer.apply(features[rows])
        covariance += block.T @ block
    _, directions = np.linalg.eigh(covariance)  # ascending
    return np.ascontiguousarray(directions[:, ::-1][:, :n_directions], dtype=np.float32)
