"""An index of features for searches by one vector at a time, as a file that is memory-mapped.

It holds every row in a fraction of its bytes, by cell: a search scans the cells nearest to the
vector and returns candidates, to be compared by the features themselves.
"""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from temi.neighbors.rows import Features, Ids, unit_blocks, unit_rows

_MAX_DIM = 128  # of the rows in the index: principal directions, one byte each
_TRAINING_ROWS_PER_CELL = 40
_PROBED_CELLS = 64
_MIN_CANDIDATES = 800
_CANDIDATES_PER_RESULT = 5


def build_index(features: Features, path: Path, *, seed: int = 0) -> None:
    """Write the index of all rows; ``features`` may be a memory map larger than memory.

    Takes about 140 bytes of memory per row.
    """
    index = _train(features, seed)
    for _, block in unit_blocks(features):
        index.add(block)
    faiss.write_index(index, str(path))


class FeatureIndex:
    """An index in a file, of which only the parts that are searched are read."""

    def __init__(self, path: Path) -> None:
        self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
        faiss.extract_index_ivf(self._index).nprobe = _PROBED_CELLS

    def candidates(self, vector: npt.NDArray[np.floating], count: int) -> Ids:
        """Return rows among which the ``count`` most similar ones are, with few exceptions.

        More than ``count``, in ascending order.
        """
        faiss.omp_set_num_threads(1)  # of this thread: a search is too short to share
        wanted = max(_MIN_CANDIDATES, _CANDIDATES_PER_RESULT * count)
        query = unit_rows(vector[None], slice(None))
        rows = self._index.search(query, min(wanted, self._index.ntotal))[1][0]
        found: Ids = np.sort(rows[rows >= 0])
        return found


def _train(features: Features, seed: int) -> Any:
    n, dim = features.shape
    cells = int(np.sqrt(n))
    rng = np.random.default_rng(seed)
    sampled = rng.choice(n, min(n, _TRAINING_ROWS_PER_CELL * cells), replace=False)
    reduced = f"PCA{_MAX_DIM}," if dim > _MAX_DIM else ""
    index = faiss.index_factory(dim, f"{reduced}IVF{cells},SQ8", faiss.METRIC_INNER_PRODUCT)
    faiss.extract_index_ivf(index).cp.seed = int(rng.integers(2**31 - 1))
    index.train(unit_rows(features, np.sort(sampled)))
    return index
