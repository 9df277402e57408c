import numpy as np

from temi.neighbors.cells import build_cells
from temi.neighbors.gpu import search_ivf
from temi.neighbors.parallel import ProgressCounter
from temi.neighbors.scan import scan_cells
from tests.temi.neighbors.brute_force import clustered_features


def test_the_faiss_index_gives_the_neighbors_of_the_scan() -> None:
    """On the CPU; only the copy to the GPU is not tested."""
    features = clustered_features(2000)
    cells = build_cells(features, np.float32, np.random.default_rng(0), ProgressCounter(2000, None))

    positions = np.concatenate(
        [
            ids
            for _, ids in search_ivf(cells.centroids, cells.take(slice(None)), 5, 11, on_gpu=False)
        ]
    )

    assert (positions[:, 0] == np.arange(2000)).mean() > 0.99
    scanned = scan_cells(cells, 10, 5, ProgressCounter(2000, None), weight=1.0)
    same = cells.row_at[positions[:, 1:]] == scanned[cells.row_at]
    assert same.mean() > 0.99
