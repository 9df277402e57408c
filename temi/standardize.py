"""Standardization of the features per dimension, before the heads."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CHUNK_ROWS = 8192


def chunks(n_rows: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices that cover ``n_rows`` in order, so that a memory map is read in parts."""
    size = size or CHUNK_ROWS
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


@dataclass(frozen=True, kw_only=True)
class Standardizer:
    mean: npt.NDArray[np.float32]  # (D,)
    std: npt.NDArray[np.float32]  # (D,), never zero

    def apply(self, features: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        return (np.asarray(features, dtype=np.float32) - self.mean) / self.std


def fit_standardizer(features: npt.NDArray[np.floating]) -> Standardizer:
    """Compute mean and standard deviation in two passes in double precision."""
    n, dim = features.shape
    total = np.zeros(dim)
    for rows in chunks(n):
        total += np.asarray(features[rows], dtype=np.float64).sum(axis=0)
    mean = total / n
    squares = np.zeros(dim)
    for rows in chunks(n):
        squares += np.square(np.asarray(features[rows], dtype=np.float64) - mean).sum(axis=0)
    std = np.sqrt(squares / n)
    # A standard deviation of the size of float32 rounding means a constant dimension: dividing by
    # it would amplify rounding noise to the size of a real feature.
    constant = std <= 1e-6 * np.maximum(np.abs(mean), 1e-6)
    return Standardizer(
        mean=mean.astype(np.float32),
        std=np.where(constant, 1.0, std).astype(np.float32),
    )


def unit_rows(features: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Return a copy with rows of length one; zero rows stay zero."""
    unit = np.empty(features.shape, dtype=np.float32)
    # In chunks: computing the norms of all rows at once would need a second copy.
    for rows in chunks(len(unit)):
        unit[rows] = features[rows]
        unit[rows] /= np.maximum(np.linalg.norm(unit[rows], axis=1, keepdims=True), 1e-12)
    return unit
