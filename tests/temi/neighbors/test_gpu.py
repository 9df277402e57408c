import numpy as np

from temi.neighbors.cells import build_cells
from temi.neighbors.gpu import search_cells
from temi.neighbors.parallel import Tally
from temi.neighbors.scan import scan_cells
from tests.temi.neighbors.brute_force import clustered_features


def test_the_index_of_faiss_finds_what_the_scan_finds() -> None:
    """On the CPU; only the move to the GPU is left out."""
    features = clustered_features(2000)
    cells = build_cells(features, np.float32, np.random.default_rng(0), Tally(2000, None))

    places = np.concatenate(
        [
            ids
            for _, ids in search_cells(
                cells.centroids, cells.take(slice(None)), 5, 11, on_gpu=False
            )
        ]
    )

    assert (places[:, 0] == np.arange(2000)).mean() > 0.99
    scanned = scan_cells(cells, 10, 5, Tally(2000, None), weight=1.0)
    same = cells.row_at[places[:, 1:]] == scanned[cells.row_at]
    assert same.mean() > 0.99
