"""Training in the informative subspace of the features.

Heads trained on z = V^T x are folded back to heads on x by w1 <- V w1: the result is the
ordinary architecture on all D dimensions, at a fraction of the cost of training there.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

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


def prepare_features(
    features: npt.NDArray[np.floating],
    standardizer: Standardizer,
    directions: Tensor | None,
    device: torch.device,
) -> Tensor:
    """Standardized and, if directions are given, projected features on the device: (N, P or D)."""
    width = features.shape[1] if directions is None else directions.shape[1]
    prepared = torch.empty((features.shape[0], width), device=device)
    for rows in chunks(features.shape[0]):
        block = torch.from_numpy(standardizer.apply(features[rows])).to(device)
        prepared[rows] = block if directions is None else block @ directions.to(device)
    return prepared
