"""Training in the informative subspace of the features.

Heads trained on z = V^T x are folded back to heads on x by w1 <- V w1: the result is the
ordinary architecture on all D dimensions, at a fraction of the cost of training there.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.standardize import Standardizer, chunks

Matrix = npt.NDArray[np.float64]


def principal_directions(
    features: npt.NDArray[np.floating], standardizer: Standardizer, n_directions: int
) -> npt.NDArray[np.float32]:
    """Orthonormal directions of largest variance of the standardized features: (D, P).

    Every product has one core, and the sign is fixed: cores that share a product round it
    differently, and a flipped direction is another start of training.
    """
    dim = features.shape[1]
    covariance = np.zeros((dim, dim))
    with threadpool_limits(limits=1, user_api="blas"):
        for part in _covariances(features, standardizer):
            covariance += part
        _, directions = np.linalg.eigh(covariance)  # ascending
    directions = directions[:, ::-1][:, :n_directions]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.ascontiguousarray(directions * np.sign(largest), dtype=np.float32)


def _covariances(
    features: npt.NDArray[np.floating], standardizer: Standardizer
) -> Iterator[Matrix]:
    """Those of the chunks, in their order, a few at a time: (D, D) each."""

    def product(rows: slice) -> Matrix:
        # In float64: what another processor's order of adding changes is then lost in the end.
        block = standardizer.apply(features[rows]).astype(np.float64)
        return block.T @ block

    threads = torch.get_num_threads()
    waiting: deque[Future[Matrix]] = deque()
    with ThreadPoolExecutor(threads, "covariance") as pool:
        for rows in chunks(features.shape[0]):
            waiting.append(pool.submit(product, rows))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
