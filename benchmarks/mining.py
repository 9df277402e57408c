"""Time, recall and memory of neighbor mining, exact and approximate.

.venv/bin/python -m benchmarks.mining --rows 10000 30000 100000
"""

import argparse
import multiprocessing
import resource
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.lib.format import open_memmap

DEFAULT_ROWS = (10_000, 30_000, 100_000)
# Above this size, exact search takes minutes to hours and is not run.
MOST_EXACT_ROWS = 100_000
DIM = 384
K = 50
_ROWS_PER_GROUP = 500
_LATENT = 24
_CHUNK = 65_536
_WIDTH = 11
# The printed columns with their formats, by the names of the measurements.
COLUMNS = {
    "rows": ",d",
    "method": "s",
    "seconds": ".1f",
    "cpu_seconds": ".1f",
    "rows_per_second": ",.0f",
    "recall": ".4f",
    "n_cells": "d",
    "n_probes": "d",
    "rss_growth_mb": ",.0f",
    "gflops": ".0f",
    "share_of_peak": ".2f",
}


def write_features(path: Path, rows: int, seed: int = 0) -> None:
    """Write overlapping groups of about 500 rows in a low-dimensional subspace, plus noise.

    Some neighbors are in other groups, as in features of photos. Separate groups would make an
    approximate search look better than it is.
    """
    rng = np.random.default_rng(seed)
    groups = max(2, rows // _ROWS_PER_GROUP)
    centers = rng.normal(size=(groups, _LATENT)).astype(np.float32)
    spread = (rng.normal(size=(_LATENT, DIM)) / _LATENT**0.5).astype(np.float32)
    features = open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, DIM))
    for start in range(0, rows, _CHUNK):
        count = min(_CHUNK, rows - start)
        latent = centers[rng.integers(groups, size=count)]
        latent = latent + 0.8 * rng.standard_normal((count, _LATENT), dtype=np.float32)
        noise = 0.2 * rng.standard_normal((count, DIM), dtype=np.float32)
        features[start : start + count] = latent @ spread + noise
    features.flush()


def peak_gflops(size: int = 3072) -> float:
    """Return the best rate of a few large float32 matrix products on all cores."""
    square = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        square @ square
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best / 1e9


class PeakMemory(threading.Thread):
    """Return the anonymous memory; pages of the mapped file are in the page cache."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._process = psutil.Process()
        self._stopped = threading.Event()
        self._before = self._used()
        self.growth = 0

    def _used(self) -> int:
        memory = self._process.memory_info()
        return int(memory.rss - memory.shared)

    def run(self) -> None:
        while not self._stopped.wait(0.02):
            self.growth = max(self.growth, self._used() - self._before)

    def stop(self) -> int:
        self._stopped.set()
        self.join()
        return self.growth


def measure_one(path: Path, method: str) -> dict[str, Any]:
    """Run one search in a separate process, to measure its memory alone."""
    from temi.neighbors.search import mine_neighbors

    features = np.load(path, mmap_mode="r")
    rows, dim = features.shape
    mine_neighbors(
        features[:2000], K, method="exact"
    )  # loads the libraries and starts their threads
    peak = peak_gflops()
    memory = PeakMemory()
    memory.start()
    started, cpu = time.perf_counter(), _cpu_seconds()
    found = mine_neighbors(features, K, method=method)  # type: ignore[arg-type]
    seconds, cpu = time.perf_counter() - started, _cpu_seconds() - cpu
    growth = memory.stop()
    gflops = 2 * rows**2 * dim / seconds / 1e9 if found.method == "exact" else None
    return {
        "rows": rows,
        "method": found.method,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "rows_per_second": rows / seconds,
        "recall": found.recall,
        "n_cells": found.n_cells,
        "n_probes": found.n_probes,
        "rss_growth_mb": growth / 2**20,
        "gflops": gflops,
        "share_of_peak": gflops / peak if gflops else None,
    }


def measure(row_counts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield one dict per search as soon as it is finished."""
    context = multiprocessing.get_context("spawn")
    for rows in row_counts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "features.npy"
            write_features(path, rows)
            methods = ["exact", "approximate"] if rows <= MOST_EXACT_ROWS else ["approximate"]
            for method in methods:
                with context.Pool(1) as pool:
                    yield pool.apply(measure_one, (path, method))


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _line(row: dict[str, Any]) -> str:
    shown = {name: "-" if row[name] is None else format(row[name], COLUMNS[name]) for name in row}
    return "  ".join(text.rjust(max(len(name), _WIDTH)) for name, text in shown.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=list(DEFAULT_ROWS))
    row_counts = parser.parse_args().rows
    print("  ".join(name.rjust(_WIDTH) for name in COLUMNS))
    for row in measure(row_counts):
        print(_line(row), flush=True)


if __name__ == "__main__":
    main()
