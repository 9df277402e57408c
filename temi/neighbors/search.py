"""The nearest neighbors of every row by cosine similarity."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from temi.errors import InvalidConfig, TemiError
from temi.neighbors.approximate import approximate_neighbors
from temi.neighbors.exact import exact_neighbors
from temi.neighbors.gpu import gpu_count
from temi.neighbors.parallel import Progress
from temi.neighbors.rows import Features, Ids

# Cells are faster from about 10,000 rows on, but only from here on do they save more than a few
# seconds; see `benchmarks/mining.py`. For a GPU this is a guess: none was there to measure.
APPROXIMATE_ROWS = 20_000
APPROXIMATE_ROWS_GPU = 1_000_000

# A fixed size, not a share of this machine's memory: it decides between float32 and float16, and
# between cells and an exact search, which are to be the same everywhere.
MEMORY_BYTES = 8 << 30

Method = Literal["auto", "exact", "approximate"]


@dataclass(frozen=True, kw_only=True)
class Neighbors:
    """What was found, and how far it can be trusted."""

    ids: Ids  # (N, k), nearest first
    method: Literal["exact", "approximate"]
    recall: float  # 1 if exact, else the share of true neighbors found, measured on a sample
    n_cells: int | None = None  # what an approximate search sorted the rows into
    n_probes: int | None = None  # and how many of them it looked at for each row

    def summary(self) -> dict[str, Any]:
        return {
            "k": self.ids.shape[1],
            "method": self.method,
            "recall": self.recall,
            "n_cells": self.n_cells,
            "n_probes": self.n_probes,
        }


def mine_neighbors(
    features: Features,
    k: int,
    *,
    method: Method = "auto",
    seed: int = 0,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress | None = None,
) -> Neighbors:
    """The ``k`` most similar rows of every row, nearest first.

    A row is left out of its own list by its id, never by its rank: an exact duplicate is as
    similar to the row as the row itself. ``k`` is clipped to N - 1, and every row gets ``k``.

    ``auto`` searches exactly up to `APPROXIMATE_ROWS` rows and approximately beyond.
    ``approximate`` still answers exactly where that is faster or where 98 % of the neighbors
    cannot be reached; ``method`` and ``recall`` of the result say what happened.

    ``features`` may be a memory map larger than memory. ``memory_bytes``
    bounds the rows that are held: an approximate search holds all of
    them as float32, else as float16, and gives way to an exact one if not even those fit;
    an exact search holds as many as fit, and reads the features once for each such part. The
    result, 8 N k bytes, and up to about 0.3 GB a core of working memory come on top.
    """
    if k < 1:
        raise InvalidConfig("n_neighbors", "must be at least 1")
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    n = len(features)
    k = min(k, max(n - 1, 0))
    if k == 0:
        return Neighbors(ids=np.empty((n, 0), dtype=np.int64), method="exact", recall=1.0)
    report = _never_back(progress)
    if method == "approximate" or (method == "auto" and n > _crossover()):
        found = approximate_neighbors(
            features, k, seed=seed, memory_bytes=memory_bytes, progress=report
        )
        if found is not None:
            return Neighbors(
                ids=found.ids,
                method="approximate",
                recall=found.recall,
                n_cells=found.n_cells,
                n_probes=found.n_probes,
            )
    ids = exact_neighbors(features, k, memory_bytes=memory_bytes, progress=report)
    return Neighbors(ids=ids, method="exact", recall=1.0)


def _crossover() -> int:
    return APPROXIMATE_ROWS_GPU if gpu_count() > 0 else APPROXIMATE_ROWS


def _never_back(progress: Progress | None) -> Progress | None:
    """An approximate search that is given up must not set a progress bar back."""
    if progress is None:
        return None
    furthest = 0

    def report(done: int, total: int) -> None:
        nonlocal furthest
        furthest = max(furthest, done)
        progress(furthest, total)

    return report
