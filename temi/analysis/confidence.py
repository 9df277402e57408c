"""Confidence of the assignments and balance of the clusters, measured without labels.

All logarithms are natural, and 0 log 0 is 0.
"""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from temi.errors import TemiError
from temi.standardize import chunks

# Probabilities processed at a time: 32 MB in double precision for any number of clusters.
_CHUNK_VALUES = 2**22
# The sum of a row stored in half precision may differ from one by this much.
_SUM_TOLERANCE = 1e-2


@dataclass(frozen=True, kw_only=True)
class Confidence:
    mean_probability: float  # of the most probable cluster (MSP), over the images
    median_probability: float
    occupancy_entropy: float  # H(q(c)): high where all clusters are used
    conditional_entropy: float  # E_x H(q(c|x)): low where images are assigned with confidence
    mutual_information: float  # I(c; x) = H(q(c)) - E_x H(q(c|x))
    max_entropy: float  # log C, the upper bound of the entropies
    size_kl: float  # KL of the cluster sizes to equal sizes
    empty_clusters: int  # clusters that are the most probable one of no image
    cluster_sizes: tuple[int, ...]  # (C,) images for which the cluster is the most probable

    def as_dict(self) -> dict[str, float | int | tuple[int, ...]]:
        return asdict(self)


class ConfidenceTally:
    """Computes the figures from blocks of probabilities, for sets larger than memory."""

    def __init__(self, n_clusters: int) -> None:
        if n_clusters < 1:
            raise TemiError("there must be at least one cluster")
        self._occupancy = np.zeros(n_clusters)
        self._entropy = 0.0
        self._assigned: list[npt.NDArray[np.int64]] = []
        self._probability: list[npt.NDArray[np.float64]] = []
        self._margin: list[npt.NDArray[np.float64]] = []

    @property
    def n_clusters(self) -> int:
        return len(self._occupancy)

    def add(self, probs: npt.NDArray[np.floating]) -> None:
        """Add the probabilities of further images: (B, C)."""
        n_clusters = self.n_clusters
        if probs.ndim != 2 or probs.shape[1] != n_clusters:
            raise TemiError(f"probabilities must have shape (N, {n_clusters}), not {probs.shape}")
        for rows in chunks(len(probs), max(1, _CHUNK_VALUES // n_clusters)):
            self._add_block(np.asarray(probs[rows], dtype=np.float64))

    def assigned(self) -> npt.NDArray[np.int64]:
        """Return the most probable cluster of every image so far: (N,)."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._assigned])

    def probability(self) -> npt.NDArray[np.float64]:
        """Return the probability of the most probable cluster: (N,)."""
        return np.concatenate([np.empty(0), *self._probability])

    def margin(self) -> npt.NDArray[np.float64]:
        """Return the probability minus that of the second most probable cluster: (N,)."""
        return np.concatenate([np.empty(0), *self._margin])

    def result(self) -> Confidence:
        probability = self.probability()
        n, n_clusters = len(probability), self.n_clusters
        if n == 0:
            raise TemiError("there are no images to measure")
        sizes = np.bincount(self.assigned(), minlength=n_clusters)  # (C,)
        max_entropy = float(np.log(n_clusters))
        occupancy_entropy = float(entr(self._occupancy / n).sum())
        conditional_entropy = self._entropy / n
        return Confidence(
            mean_probability=float(probability.mean()),
            median_probability=float(np.median(probability)),
            occupancy_entropy=occupancy_entropy,
            conditional_entropy=conditional_entropy,
            # The two differences can be negative only because of rounding.
            mutual_information=max(0.0, occupancy_entropy - conditional_entropy),
            max_entropy=max_entropy,
            size_kl=max(0.0, max_entropy - float(entr(sizes / n).sum())),
            empty_clusters=int((sizes == 0).sum()),
            cluster_sizes=tuple(sizes.tolist()),
        )

    def _add_block(self, block: npt.NDArray[np.float64]) -> None:
        sums = block.sum(axis=1)
        # Written so that NaN fails the check too.
        if not ((block >= 0).all() and (np.abs(sums - 1) <= _SUM_TOLERANCE).all()):
            raise TemiError("probabilities must not be negative, and each row must sum to one")
        assigned = block.argmax(axis=1)
        self._occupancy += block.sum(axis=0)
        self._entropy += float(entr(block).sum())
        self._assigned.append(assigned)
        rows = np.arange(len(block))
        probability = block[rows, assigned]
        self._probability.append(probability)
        others = block.copy()
        others[rows, assigned] = 0.0
        self._margin.append(probability - others.max(axis=1))


def measure_confidence(probs: npt.NDArray[np.floating]) -> Confidence:
    """Return the figures of a whole set (N, C); a memory map is read in parts."""
    if probs.ndim != 2:
        raise TemiError(f"probabilities must have shape (N, C), not {probs.shape}")
    tally = ConfidenceTally(probs.shape[1])
    tally.add(probs)
    return tally.result()
