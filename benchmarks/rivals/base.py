"""The interface of all rivals."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.device import torch_threads
from temi.errors import InvalidConfig, TemiError

Features = npt.NDArray[np.floating]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Fitted:
    labels: Labels  # (N,): the cluster of each row of the training features
    predict: Callable[[Features], Labels]  # (M, D) -> (M,): the clusters of new rows


class Rival(Protocol):
    """A clustering method on frozen features; the same seed gives the same result."""

    name: str

    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted: ...


def check(features: Features, n_clusters: int) -> None:
    """Raise an error that names the wrong input, instead of one from inside a library."""
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    if not np.isfinite(features).all():
        raise TemiError("features contain NaN or infinity")
    if not 2 <= n_clusters <= len(features):
        raise InvalidConfig("n_clusters", f"must be from 2 to {len(features)}, not {n_clusters}")


@contextmanager
def one_core() -> Iterator[None]:
    """Compute on one core: the result is then the same on any machine and however busy it is.

    The products of small heads are too small to gain from several cores.
    """
    with torch_threads(1), threadpool_limits(limits=1):
        yield
