"""A consensus of the heads of a run.

Heads differ in how they divide the images, above all if there are many clusters. Where most of them
agree they are usually right, so the consensus groups the images by all their assignments.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

_N_INIT = 10  # starts of k-means
_MAX_DIM = 256  # k-means in this many dimensions

Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Consensus:
    tables: npt.NDArray[np.float32]  # (H, C, C): P(cluster of the consensus | cluster of the head)
    agreement: float  # mean normalized mutual information of the heads and the consensus

    def votes(self, heads: Probabilities) -> Probabilities:
        """Return the share of the heads (H, n, C) that vote for each cluster: (n, C)."""
        votes = np.zeros(heads.shape[1:], dtype=np.float32)
        for probabilities, table in zip(heads, self.tables, strict=True):
            votes += probabilities @ table
        votes /= np.maximum(votes.sum(axis=1, keepdims=True), np.float32(1e-12))
        return votes


def find_consensus(heads: Probabilities, seed: int) -> Consensus:
    """Join the probabilities (H, n, C) of all heads.

    Two images are similar if the heads assign them alike: k-means groups the images by the square
    roots of all their probabilities.
    """
    n_heads, n, n_clusters = heads.shape
    rows = np.sqrt(heads).transpose(1, 0, 2).reshape(n, n_heads * n_clusters)
    labels = _group(rows, n_clusters, seed)
    groups = np.eye(n_clusters, dtype=np.float32)[labels]
    joint = heads.transpose(0, 2, 1) @ groups  # (H, C, C)
    # A cluster that a head does not use votes for all alike.
    joint += np.float32(1e-6)
    agreement = [normalized_mutual_info_score(head.argmax(axis=1), labels) for head in heads]
    return Consensus(
        tables=joint / joint.sum(axis=2, keepdims=True), agreement=float(np.mean(agreement))
    )


def _group(rows: Probabilities, n_clusters: int, seed: int) -> npt.NDArray[np.int64]:
    dim, state = min(_MAX_DIM, *rows.shape), seed % 2**32
    # One core: products on several cores round differently.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # With fewer distinct rows than clusters, some clusters stay empty; that is no error here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if dim < rows.shape[1]:
            left, values, _ = randomized_svd(rows - rows.mean(axis=0), dim, random_state=state)
            rows = left * values
        fitted = KMeans(n_clusters, n_init=_N_INIT, random_state=state).fit(rows)
    return np.asarray(fitted.labels_, dtype=np.int64)
