"""A consensus of the heads of a run.

Heads differ in how they divide the images, above all if there are many clusters. Where most of them
agree they are usually right, so the consensus groups the images by all their assignments.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

_N_INIT = 10  # starts of k-means
_MAX_DIM = 256  # k-means in this many dimensions
_PRIOR = 1.0  # images

Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Consensus:
    log_tables: npt.NDArray[np.float32]  # (H, C, C): log P(cluster of the head | cluster)
    agreement: float  # mean normalized mutual information of the heads and the consensus

    def probabilities(self, heads: Probabilities) -> Probabilities:
        """Return the probabilities of the consensus, given those of the heads (H, n, C): (n, C).

        All clusters are as likely before the heads are known, so that small ones stay. The mean
        of two: Bayes' rule for heads that are independent given the cluster, which finds
        the best cluster but is too sure of it, and the share of the heads that vote for a cluster,
        which tells how sure it is but leaves small clusters empty.
        """
        evidence, votes = (np.zeros(heads.shape[1:], dtype=np.float32) for _ in range(2))
        with _one_core():
            for probabilities, table in zip(heads, self.log_tables, strict=True):
                evidence += probabilities @ table
                votes += probabilities @ softmax(table, axis=1)
        by_bayes = softmax(evidence, axis=1)
        return np.asarray((by_bayes + votes / len(heads)) / 2, dtype=np.float32)


def find_consensus(heads: Probabilities, seed: int) -> Consensus:
    """Join the probabilities (H, n, C) of all heads.

    Two images are similar if the heads assign them alike: k-means groups the images by the square
    roots of all their probabilities.
    """
    return consensus_of(heads, group_images(heads, seed))


def group_images(heads: Probabilities, seed: int) -> npt.NDArray[np.int64]:
    """Return the group of each image by the probabilities (H, n, C) of all heads: (n,)."""
    n_heads, n, n_clusters = heads.shape
    rows = np.sqrt(heads).transpose(1, 0, 2).reshape(n, n_heads * n_clusters)
    return _group(rows, n_clusters, seed)


def consensus_of(heads: Probabilities, labels: npt.NDArray[np.int64]) -> Consensus:
    """Return the consensus for images (H, n, C) whose clusters (n,) are given."""
    n_clusters = heads.shape[2]
    groups = np.eye(n_clusters, dtype=np.float32)[labels]
    sizes = groups.sum(axis=0)  # (C,)
    with _one_core():
        joint = heads.transpose(0, 2, 1) @ groups  # (H, C of the head, C)
    # As if each cluster had a few more images, in all clusters of each head.
    table = (joint + _PRIOR / n_clusters) / (sizes + _PRIOR)
    agreement = [normalized_mutual_info_score(head.argmax(axis=1), labels) for head in heads]
    return Consensus(
        log_tables=np.log(table).astype(np.float32),
        agreement=float(np.mean(agreement)),
    )


def _group(rows: Probabilities, n_clusters: int, seed: int) -> npt.NDArray[np.int64]:
    dim, state = min(_MAX_DIM, *rows.shape), seed % 2**32
    # One core: products on several cores round differently.
    n_clusters = min(n_clusters, len(rows))
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # With fewer distinct rows than clusters, some clusters stay empty; that is no error here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if dim < rows.shape[1]:
            left, values, _ = randomized_svd(rows - rows.mean(axis=0), dim, random_state=state)
            rows = left * values
        fitted = KMeans(n_clusters, n_init=_N_INIT, random_state=state).fit(rows)
    return np.asarray(fitted.labels_, dtype=np.int64)


def _one_core() -> Any:
    """Products on several cores round differently."""
    return threadpool_limits(limits=1)
