"""Search by one vector: recall, time, memory, size and build time of the index by number of images.

.venv/bin/python -m benchmarks.search --images photos.zip --rows 10000 100000 1000000

The vectors are mixtures of the features of real images, so that any number can be made. Times are
those of one search in one thread, without names and clusters, which the database adds.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from app.core.datasets.features import INDEX_ROWS, StoredFeatures, computing
from benchmarks.mining import PeakMemory
from benchmarks.sets import demo, images
from temi.neighbors.index import FeatureIndex, build_index
from temi.neighbors.rows import unit_blocks, unit_rows

DEFAULT_ROWS = (10_000, 100_000, 1_000_000)
QUERIES = 200
LIMIT = 50
_MIXED = 4  # images of one vector
_NEAR = 20  # among which they are
_NOISE = 0.3
_CHUNK = 16_384
COLUMNS = {
    "rows": ",d",
    "method": "s",
    "recall": ".3f",
    "median_ms": ".1f",
    "p95_ms": ".1f",
    "memory_mb": ",.0f",
    "index_mb": ",.0f",
    "build_s": ".0f",
    "build_mb": ",.0f",
}


def write_features(path: Path, rows: int, source: npt.NDArray[np.float32], seed: int = 0) -> None:
    """Mixtures of an image with some of its nearest images, times noise in every feature."""
    rng = np.random.default_rng(seed)
    units = unit_rows(source, slice(None))
    _, near = faiss.knn(units, units, _NEAR + 1, metric=faiss.METRIC_INNER_PRODUCT)
    shape = (rows, source.shape[1])
    features = open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, rows, _CHUNK):
        count = min(_CHUNK, rows - start)
        first = rng.integers(len(source), size=count)
        mixed = near[first[:, None], rng.integers(_NEAR + 1, size=(count, _MIXED))]
        shares = rng.dirichlet(np.full(_MIXED, 0.5), size=count).astype(np.float32)
        block = np.einsum("nm,nmd->nd", shares, source[mixed])
        noise = rng.standard_normal(block.shape, dtype=np.float32)
        features[start : start + count] = block * np.exp(_NOISE * noise)
    features.flush()


def exact_neighbors(
    features: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The nearest rows of each of these, with itself: (Q, LIMIT)."""
    queries = unit_rows(features, rows)
    best = faiss.ResultHeap(len(queries), LIMIT, keep_max=True)
    for start, block in unit_blocks(features):
        scores, ids = faiss.knn(queries, block, LIMIT, metric=faiss.METRIC_INNER_PRODUCT)
        best.add_result(scores, ids + start)
    best.finalize()
    found: npt.NDArray[np.int64] = best.I
    return found


def measure_one(folder: Path) -> dict[str, Any]:
    """In a process of its own, to measure its memory alone."""
    features, index = np.load(folder / "features.npy", mmap_mode="r"), folder / "index"
    built = _build(folder) if len(features) > INDEX_ROWS else {}
    hashes = np.random.default_rng(1).integers(0, 256, (len(features), 32), dtype=np.uint8)
    stored = StoredFeatures(
        features=features, hashes=hashes, index=FeatureIndex(index) if built else None
    )
    rows = np.sort(np.random.default_rng(2).choice(len(features), QUERIES, replace=False))
    exact = exact_neighbors(features, rows)
    for row in rows[:10]:  # libraries and pages of the file that every search needs
        _search(stored, row)
    memory = PeakMemory()
    memory.start()
    seconds, hits = [], 0
    for row, expected in zip(rows, exact, strict=True):
        started = time.perf_counter()
        found = _search(stored, row)
        seconds.append(time.perf_counter() - started)
        hits += len(np.intersect1d(found, expected))
    return {
        "rows": len(features),
        "method": "index" if built else "exact",
        "recall": hits / exact.size,
        "median_ms": 1000 * float(np.median(seconds)),
        "p95_ms": 1000 * float(np.percentile(seconds, 95)),
        "memory_mb": memory.stop() / 2**20,
        "index_mb": built.get("index_mb"),
        "build_s": built.get("build_s"),
        "build_mb": built.get("build_mb"),
    }


def _build(folder: Path) -> dict[str, float]:
    memory = PeakMemory()
    memory.start()
    started = time.perf_counter()
    build_index(np.load(folder / "features.npy", mmap_mode="r"), folder / "index")
    return {
        "build_s": time.perf_counter() - started,
        "build_mb": memory.stop() / 2**20,
        "index_mb": (folder / "index").stat().st_size / 2**20,
    }


def _search(stored: StoredFeatures, row: int) -> npt.NDArray[np.int64]:
    """As the service searches by an image: the hash to its row, then the nearest rows."""
    known = stored.row_of(stored.hashes[row].tobytes().hex())
    assert known == row
    with computing():
        scored = stored.nearest(stored.features[known], LIMIT)
        return scored.rows[np.argsort(-scored.cosines, kind="stable")[:LIMIT]]


def measure(row_counts: Sequence[int], source: npt.NDArray[np.float32]) -> Iterator[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    for rows in row_counts:
        with tempfile.TemporaryDirectory() as folder:
            write_features(Path(folder) / "features.npy", rows, source)
            with context.Pool(1) as pool:
                yield pool.apply(measure_one, (Path(folder),))


def _line(row: dict[str, Any]) -> str:
    shown = ("-" if row[name] is None else format(row[name], how) for name, how in COLUMNS.items())
    return "  ".join(text.rjust(10) for text in shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=list(DEFAULT_ROWS))
    parser.add_argument("--images", type=Path, help="zip of photos; default: the demo's drawings")
    given = parser.parse_args()
    source = images(given.images) if given.images else demo()
    print("  ".join(name.rjust(10) for name in COLUMNS))
    for row in measure(given.rows, source.features):
        print(_line(row), flush=True)


if __name__ == "__main__":
    main()
