"""Principal directions, to train the heads in fewer dimensions.

Heads trained on z = V^T x become heads on x by w1 <- V w1: the result is the ordinary
architecture on all D dimensions, at a fraction of the training cost.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.cores import core_count
from temi.standardize import Standardizer, chunks

Matrix = npt.NDArray[np.float64]


def principal_directions(
    features: npt.NDArray[np.floating], standardizer: Standardizer, n_directions: int
) -> npt.NDArray[np.float32]:
    """Return the orthonormal directions of largest variance of the standardized features: (D, P).

    Every product uses one core and the signs are fixed: a product on several cores rounds
    differently, and a flipped direction changes the initial heads.
    """
    dim = features.shape[1]
    covariance = np.zeros((dim, dim))
    with threadpool_limits(limits=1, user_api="blas"):
        for block in _covariances(features, standardizer):
            covariance += block
        _, directions = np.linalg.eigh(covariance)  # ascending
    directions = directions[:, ::-1][:, :n_directions]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.ascontiguousarray(directions * np.sign(largest), dtype=np.float32)


def _covariances(
    features: npt.NDArray[np.floating], standardizer: Standardizer
) -> Iterator[Matrix]:
    """Yield the covariance (D, D) of each chunk in order, computing a few in parallel."""

    def product(rows: slice) -> Matrix:
        # In float64: the effect of the summation order then vanishes in the float32 result.
        block = standardizer.apply(features[rows]).astype(np.float64)
        return block.T @ block

    threads = core_count()
    waiting: deque[Future[Matrix]] = deque()
    with ThreadPoolExecutor(threads, "covariance") as pool:
        for rows in chunks(features.shape[0]):
            waiting.append(pool.submit(product, rows))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
