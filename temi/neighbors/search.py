"""Mines the nearest neighbors of every row by cosine similarity."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from temi.errors import InvalidConfig, TemiError
from temi.neighbors.approximate import approximate_neighbors
from temi.neighbors.exact import exact_neighbors
from temi.neighbors.gpu import gpu_count
from temi.neighbors.parallel import Progress
from temi.neighbors.rows import Features, Ids

# Approximate search is faster from about 10,000 rows on, but saves more than a few seconds only
# from this size on; see `benchmarks/mining.py`. The value for GPUs is a guess, not measured.
APPROXIMATE_ROWS = 20_000
APPROXIMATE_ROWS_GPU = 1_000_000

# A fixed size, not a share of this machine's memory: it decides between float32 and float16 and
# between approximate and exact search, which should not depend on the machine.
MEMORY_BYTES = 8 << 30

Method = Literal["auto", "exact", "approximate"]


@dataclass(frozen=True, kw_only=True)
class Neighbors:
    """The neighbors of every row, with the method and its recall."""

    ids: Ids  # (N, k), nearest first
    method: Literal["exact", "approximate"]
    recall: float  # 1 if exact, else the share of true neighbors found, measured on a sample
    n_cells: int | None = None  # of an approximate search
    n_probes: int | None = None  # of an approximate search: cells scanned for each row

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
    """Return the ``k`` most similar rows of every row, most similar first.

    A row is excluded from its own neighbors by its id, not by its rank: an exact duplicate is as
    similar to the row as the row itself. ``k`` is clipped to N - 1, and every row gets ``k``.

    ``auto`` searches exactly up to `APPROXIMATE_ROWS` rows and approximately beyond.
    ``approximate`` still searches exactly if that is faster or if a recall of 98 % cannot be
    reached; ``method`` and ``recall`` of the result tell which method was used.

    ``features`` may be a memory map larger than memory. ``memory_bytes`` limits the rows in
    memory: an approximate search holds all rows as float32, or as float16, and falls back to
    exact search if neither fits; an exact search holds a block of rows that fits, and reads the
    features once per block. The result, 8 N k bytes, and up to about 0.3 GB of working memory per
    core are not included.
    """
    if k < 1:
        raise InvalidConfig("n_neighbors", f"must be at least 1, not {k}")
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    n = len(features)
    k = min(k, max(n - 1, 0))
    if k == 0:
        return Neighbors(ids=np.empty((n, 0), dtype=np.int64), method="exact", recall=1.0)
    report = _monotonic(progress)
    if method == "approximate" or (method == "auto" and n > _crossover()):
        found = approximate_neighbors(
            features, k, seed=seed, memory_bytes=memory_bytes, progress=report
        )
        if found is not None:
            return Neighbors(method="approximate", **vars(found))
    ids = exact_neighbors(features, k, memory_bytes=memory_bytes, progress=report)
    return Neighbors(ids=ids, method="exact", recall=1.0)


def _crossover() -> int:
    return APPROXIMATE_ROWS_GPU if gpu_count() > 0 else APPROXIMATE_ROWS


def _monotonic(progress: Progress | None) -> Progress | None:
    """Keep progress from falling when an approximate search is replaced by an exact one."""
    if progress is None:
        return None
    highest = 0

    def report(done: int, total: int) -> None:
        nonlocal highest
        highest = max(highest, done)
        progress(highest, total)

    return report
