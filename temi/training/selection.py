"""Chooses the heads of the consensus without labels.

Heads often end in different solutions. Those whose clusters follow the graph of nearest neighbors
are more often right, so the others are left out.
"""

import numpy as np
import numpy.typing as npt

JUDGED_IMAGES = 5000  # whose neighbors are compared
_MIN_HEADS = 8  # that are joined, if there are as many

Labels = npt.NDArray[np.integer]


def choose_heads(modularity: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the ids of the better half of the heads, in ascending order."""
    count = max(_MIN_HEADS, len(modularity) // 2)
    best = np.argsort(-modularity, kind="stable")[:count]
    return np.sort(best).astype(np.int64)


def edge_modularity(
    clusters: Labels, beside: Labels, present: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return the share of the edges inside of clusters, less that of chance, of each head: (H,).

    ``clusters`` (H, n) are those of the images, ``beside`` (H, n, k) those of their neighbors;
    edges that are not ``present`` (n, k) do not count.
    """
    n_edges = max(1, int(present.sum()))
    degrees = present.sum(axis=1)  # (n,)
    found = []
    for first, second in zip(clusters, beside, strict=True):
        inside = int(((first[:, None] == second) & present).sum())
        n_clusters = int(max(first.max(), second.max())) + 1
        starts = np.bincount(first, weights=degrees, minlength=n_clusters) / n_edges
        ends = np.bincount(second[present], minlength=n_clusters) / n_edges
        found.append(inside / n_edges - float(starts @ ends))
    return np.array(found)
