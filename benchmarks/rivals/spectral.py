"""Spectral clustering of the graph of nearest neighbors."""

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh

from benchmarks.rivals.base import Features, Fitted, Labels, check, one_core
from temi.analysis.kmeans import kmeans
from temi.neighbors.search import mine_neighbors
from temi.standardize import unit_rows

N_NEIGHBORS = 15
DENSE_ROWS = 200  # a dense solver is as fast for fewer rows, and finds any number of vectors

Matrix = npt.NDArray[np.float64]


class Spectral:
    """Normalized spectral clustering (Ng, Jordan and Weiss, NIPS 2001; Shi and Malik 2000).

    The graph joins each image with its 15 nearest neighbors by cosine similarity; an edge that is
    found in both directions weighs 1, in one direction 1/2. The rows of the largest eigenvectors
    of the normalized graph are scaled to length one and clustered by k-means. The method has no
    rule for new rows: they get the cluster of most of their nearest training rows.
    """

    name = "spectral"

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        check(features, n_clusters)
        vectors = largest_eigenvectors(neighbor_graph(features, seed), n_clusters, seed)
        labels = kmeans(vectors, n_clusters, seed=seed)  # scales the rows to length one
        train = unit_rows(features)

        def predict(new: Features) -> Labels:
            similarity = unit_rows(new) @ train.T  # (M, N)
            k = min(N_NEIGHBORS, len(train))
            nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
            return vote(labels[nearest], n_clusters)

        return Fitted(labels=labels, predict=predict)


def neighbor_graph(features: Features, seed: int) -> csr_matrix:
    """Return the symmetric graph, normalized by the square roots of the degrees: (N, N)."""
    neighbors = mine_neighbors(features, N_NEIGHBORS, seed=seed).ids
    n, k = neighbors.shape
    ends = (np.repeat(np.arange(n), k), neighbors.ravel())
    directed = csr_matrix((np.ones(n * k), ends), shape=(n, n))
    graph = 0.5 * (directed + directed.T)
    scale = diags(1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))  # never 0: k >= 1
    return csr_matrix(scale @ graph @ scale)


def largest_eigenvectors(graph: csr_matrix, count: int, seed: int) -> Matrix:
    """Return the eigenvectors with the largest eigenvalues as columns: (N, count)."""
    n = graph.shape[0]
    if n <= max(DENSE_ROWS, 4 * count):
        return np.asarray(eigh(graph.toarray(), subset_by_index=(n - count, n - 1))[1])
    # A fixed start: by default it is drawn anew in each call.
    start = np.random.default_rng(seed).normal(size=n)
    return np.asarray(eigsh(graph, k=count, which="LA", v0=start)[1])


def vote(labels: npt.NDArray[np.int64], n_clusters: int) -> Labels:
    """Return the most frequent label of each row of (M, k)."""
    counts = np.zeros((len(labels), n_clusters), dtype=np.int64)
    np.add.at(counts, (np.arange(len(labels))[:, None], labels), 1)
    return np.asarray(counts.argmax(axis=1), dtype=np.int64)
