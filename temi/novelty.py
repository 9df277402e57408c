"""Novelty: how unlike the training images a new image is.

The score is the cosine distance to the nearest of a bounded number of training images. The novelty
is the share of the training images that have a lower score, each measured without itself: an image
of the kind that the model was trained on is above 99 % in one of a hundred cases.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError
from temi.standardize import chunks

_NAMES = ("references", "quantiles")
MAX_REFERENCES = 1024
QUANTILES = 1001
_MAX_SCORED = 4096  # training images whose scores are the quantiles
_DECIMALS = 9  # the last digits depend on the size of a batch
_CHUNK = 1024

Numbers = npt.NDArray[np.float64]


class NoveltyDetector:
    """Computes in float64, so that an image gets the same novelty alone or in a batch."""

    def __init__(self, tensors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        _check(tensors)
        self._tensors = {
            name: np.ascontiguousarray(tensors[name], dtype=np.float32) for name in _NAMES
        }
        self._references = self._tensors["references"].astype(np.float64)  # (R, D), length one
        self._quantiles = self._tensors["quantiles"].astype(np.float64)  # (Q,), ascending

    @property
    def dim(self) -> int:
        return int(self._references.shape[1])

    @property
    def bytes(self) -> int:
        return self._references.nbytes + sum(tensor.nbytes for tensor in self._tensors.values())

    def tensors(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return everything, to store as safetensors."""
        return dict(self._tensors)

    def score(self, features: npt.NDArray[np.floating]) -> Numbers:
        """Return the cosine distance to the nearest reference: (N,)."""
        if features.ndim != 2 or features.shape[1] != self.dim:
            raise TemiError(f"features must have shape (N, {self.dim}), not {features.shape}")
        scores = np.empty(len(features))
        for rows in chunks(len(features), _CHUNK):
            scores[rows] = _distances(
                exact_units(features[rows]) @ self._references.T
            )  # (chunk, R)
        return scores

    def distance_at(self, share: float) -> float:
        """Return the distance to the nearest reference that this share of training images has."""
        shares = np.linspace(0, 1, len(self._quantiles))
        return float(np.interp(share, shares, self._quantiles))

    def novelty(self, features: npt.NDArray[np.floating]) -> Numbers:
        """Return the share of training images that are less unusual: (N,), from 0 to 1."""
        shares = np.linspace(0, 1, len(self._quantiles))
        return np.asarray(np.round(np.interp(self.score(features), self._quantiles, shares), 6))


def fit_novelty(features: npt.NDArray[np.floating]) -> NoveltyDetector:
    """Keep some of the training images (N, D), evenly over the set; a memory map is read in
    parts."""
    if features.ndim != 2 or len(features) < 2:
        raise TemiError(f"novelty needs at least two images, not features {features.shape}")
    chosen = _spread(len(features), MAX_REFERENCES)
    references = exact_units(features[chosen]).astype(np.float32)
    exact = references.astype(np.float64)
    scored = _spread(len(features), _MAX_SCORED)
    place = np.full(len(features), -1)
    place[chosen] = np.arange(len(chosen))
    scores = np.empty(len(scored))
    for rows in chunks(len(scored), _CHUNK):
        cosines = exact_units(features[scored[rows]]) @ exact.T
        own = place[scored[rows]]
        cosines[own >= 0, own[own >= 0]] = -np.inf  # without itself
        scores[rows] = _distances(cosines)
    quantiles = np.quantile(scores, np.linspace(0, 1, QUANTILES))
    return NoveltyDetector({"references": references, "quantiles": quantiles.astype(np.float32)})


def _distances(cosines: Numbers) -> Numbers:
    distances: Numbers = np.round(1.0 - cosines.max(axis=1), _DECIMALS)
    return distances


def _spread(n: int, count: int) -> npt.NDArray[np.int64]:
    """Return at most ``count`` rows, evenly over the set."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.int64))


def exact_units(rows: npt.NDArray[np.floating]) -> Numbers:
    """Return rows of length one, in float64; zero rows stay zero."""
    exact = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(exact, axis=1, keepdims=True)
    unit: Numbers = exact / np.where(length > 0, length, 1.0)
    return unit


def _check(tensors: Mapping[str, npt.NDArray[np.float32]]) -> None:
    missing = [name for name in _NAMES if name not in tensors]
    if missing:
        raise TemiError(f"not a novelty detector: {', '.join(missing)} missing")
    references, quantiles = (tensors[name].shape for name in _NAMES)
    if len(references) != 2 or 0 in references or quantiles != (QUANTILES,):
        raise TemiError(f"not a novelty detector: shapes {references} and {quantiles}")
    if (np.diff(tensors["quantiles"]) < 0).any():
        raise TemiError("not a novelty detector: its quantiles must ascend")
