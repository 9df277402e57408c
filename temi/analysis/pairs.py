"""The quality of the mined pairs, measured with labels.

A pair (x, x') is true if both images have the same label, and false if they have different ones.
Pairs with an unlabeled image are neither. An id of -1 means "no neighbor".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from temi.analysis.metrics import number_labels
from temi.errors import TemiError
from temi.standardize import chunks

# Probabilities of neighbors in memory at a time.
_CHUNK_VALUES = 2**22

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighborPrecision:
    mean: float | None  # of the shares; None if no image has one
    shares: npt.NDArray[np.float64]  # (N,) share of S_x with x's label; NaN if undefined
    n_unlabeled: int  # images without a label
    n_without_neighbors: int  # labeled images none of whose neighbors has a label


@dataclass(frozen=True, kw_only=True)
class PairWeights:
    """Mean ensemble weight w(x, x'); None where there is no such pair."""

    true: float | None
    false: float | None
    n_true: int
    n_false: int

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


def neighbor_precision(
    neighbors: npt.NDArray[np.integer], labels: Sequence[object | None]
) -> NeighborPrecision:
    """Return the share of each image's labeled neighbors that has the image's label."""
    codes = _codes(neighbors, labels)
    n_true = np.zeros(len(codes))
    n_pairs = np.zeros(len(codes))
    for rows in chunks(len(codes)):
        _, true, false = _true_and_false(neighbors, codes, rows)
        n_true[rows] = true.sum(axis=1)
        n_pairs[rows] = n_true[rows] + false.sum(axis=1)
    defined = n_pairs > 0
    shares = np.full(len(codes), np.nan)
    shares[defined] = n_true[defined] / n_pairs[defined]
    return NeighborPrecision(
        mean=float(shares[defined].mean()) if defined.any() else None,
        shares=shares,
        n_unlabeled=int((codes < 0).sum()),
        n_without_neighbors=int(((codes >= 0) & ~defined).sum()),
    )


def keep_true_pairs(neighbors: npt.NDArray[np.integer], labels: Sequence[object | None]) -> Ids:
    """Return only the true neighbors, nearest first, padded with -1: (N, k)."""
    codes = _codes(neighbors, labels)
    kept = np.full(neighbors.shape, -1, dtype=np.int64)
    for rows in chunks(len(codes)):
        ids, true, _ = _true_and_false(neighbors, codes, rows)
        order = np.argsort(~true, axis=1, kind="stable")  # true ones first, else same order
        kept[rows] = np.take_along_axis(np.where(true, ids, -1), order, axis=1)
    return kept


def pair_weights(
    head_probs: Iterable[npt.NDArray[np.floating]],
    neighbors: npt.NDArray[np.integer],
    labels: Sequence[object | None],
) -> PairWeights:
    """Return the mean over heads of sum_c q(c|x) q(c|x'), averaged over true and false pairs.

    ``head_probs`` yields the teacher probabilities (N, C) of each head; an array (H, N, C) works
    too.
    """
    codes = _codes(neighbors, labels)
    n_heads, n_true, n_false = 0, 0, 0
    true_sum, false_sum = 0.0, 0.0
    # Every head has the same pairs, so the mean over heads and pairs is a single mean, and no
    # (N, k) weights are stored.
    for probs in head_probs:
        _check_probs(probs, len(codes))
        n_heads += 1
        for weights, true, false in _head_weights(probs, neighbors, codes):
            true_sum += float(weights[true].sum())
            false_sum += float(weights[false].sum())
            n_true += int(true.sum())
            n_false += int(false.sum())
    if n_heads == 0:
        raise TemiError("head_probs is empty: at least one head is needed")
    return PairWeights(
        true=true_sum / n_true if n_true else None,
        false=false_sum / n_false if n_false else None,
        n_true=n_true // n_heads,
        n_false=n_false // n_heads,
    )


def _head_weights(
    probs: npt.NDArray[np.floating], neighbors: npt.NDArray[np.integer], codes: Ids
) -> Iterator[tuple[npt.NDArray[np.float64], Mask, Mask]]:
    """Yield the pair weights of some rows, with masks of the true and the false pairs."""
    values_per_row = max(1, neighbors.shape[1] * probs.shape[1])
    for rows in chunks(len(codes), max(1, _CHUNK_VALUES // values_per_row)):
        ids, true, false = _true_and_false(neighbors, codes, rows)
        own = np.asarray(probs[rows], dtype=np.float64)  # (R, C)
        others = np.asarray(probs[np.maximum(ids, 0)], dtype=np.float64)  # (R, k, C)
        yield np.einsum("rc,rkc->rk", own, others), true, false


def _true_and_false(
    neighbors: npt.NDArray[np.integer], codes: Ids, rows: slice
) -> tuple[Ids, Mask, Mask]:
    """Return the neighbors of some rows, and masks of the true and false pairs: (R, k) each."""
    ids = np.asarray(neighbors[rows], dtype=np.int64)
    own = codes[rows, None]
    others = np.where(ids >= 0, codes[ids], -1)  # the value of codes[-1] is not used
    known = (own >= 0) & (others >= 0)
    return ids, known & (own == others), known & (own != others)


def _codes(neighbors: npt.NDArray[np.integer], labels: Sequence[object | None]) -> Ids:
    n = len(labels)
    if neighbors.ndim != 2 or neighbors.shape[0] != n:
        raise TemiError(f"neighbors must have shape ({n}, k), not {neighbors.shape}")
    if neighbors.size and (neighbors.min() < -1 or neighbors.max() >= n):
        raise TemiError(f"neighbors must be image ids from 0 to {n - 1} or -1")
    return number_labels(labels)[0]


def _check_probs(probs: npt.NDArray[np.floating], n: int) -> None:
    if probs.ndim != 2 or probs.shape[0] != n:
        raise TemiError(f"a head's probabilities must have shape ({n}, C), not {probs.shape}")
