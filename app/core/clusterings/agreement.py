"""Measures of agreement between two clusterings of the same images, from a contingency table.

The table is sparse: 25,000 clusters on either side would make a dense one of gigabytes. Uses
neither torch nor scikit-learn, which the API does not load.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Overlap:
    """`count[i]` images are in cluster `left[i]` of one and `right[i]` of the other clustering."""

    left: Integers  # (P,)
    right: Integers  # (P,); each pair occurs once
    count: Integers  # (P,), at least 1

    @property
    def total(self) -> int:
        return int(self.count.sum())

    def matched(self) -> npt.NDArray[np.bool_]:
        """Which pairs are matched: the one-to-one matching with the most common images."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching

        rows, n_rows = _numbered(self.left)
        columns, n_columns = _numbered(self.right)
        # Staying unmatched costs as much as a pair without common images, so every row has a match.
        unmatched = int(self.count.max()) + 1
        cost = np.concatenate([unmatched - self.count, np.full(n_rows, unmatched)])
        at = (
            np.concatenate([rows, np.arange(n_rows)]),
            np.concatenate([columns, n_columns + np.arange(n_rows)]),
        )
        table = csr_array((cost, at), shape=(n_rows, n_columns + n_rows))
        _, partner = min_weight_full_bipartite_matching(table)
        found: npt.NDArray[np.bool_] = partner[rows] == columns
        return found

    def adjusted_rand_index(self) -> float:
        both = _pairs(self.count)
        left, right = (_pairs(self._sizes(side)) for side in (self.left, self.right))
        expected = left * right / max(1, math.comb(self.total, 2))
        highest = (left + right) / 2
        return 1.0 if highest == expected else (both - expected) / (highest - expected)

    def normalized_mutual_information(self) -> float:
        """Normalized by the mean of the two entropies."""
        left, right = (self._sizes(side) / self.total for side in (self.left, self.right))
        if len(left) == len(right) == 1:
            return 1.0
        rows, columns = _numbered(self.left)[0], _numbered(self.right)[0]
        share = self.count / self.total
        mutual = float((share * np.log(share / (left[rows] * right[columns]))).sum())
        return max(0.0, mutual) / ((_entropy(left) + _entropy(right)) / 2)

    def _sizes(self, side: Integers) -> Integers:
        numbers, n = _numbered(side)
        sizes = np.zeros(n, dtype=np.int64)
        np.add.at(sizes, numbers, self.count)
        return sizes


def _numbered(clusters: Integers) -> tuple[Integers, int]:
    """The clusters renumbered as 0, 1, ..., and their number."""
    found, numbers = np.unique(clusters, return_inverse=True)
    return numbers.astype(np.int64), len(found)


def _pairs(counts: Integers) -> int:
    return int((counts * (counts - 1) // 2).sum())


def _entropy(shares: npt.NDArray[np.float64]) -> float:
    return -float((shares * np.log(shares)).sum())
