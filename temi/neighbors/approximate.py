"""Approximate search with a recall that is measured on a sample, never assumed."""

from dataclasses import dataclass

import numpy as np

from temi.neighbors.cells import Cells, build_cells
from temi.neighbors.exact import nearest
from temi.neighbors.parallel import Progress, Tally
from temi.neighbors.rows import Features, Ids, unit_rows, without_self
from temi.neighbors.scan import scan_cells

LEAST_RECALL = 0.98
# Asked of the sample that chooses the probes, so that another sample also passes.
_TARGET_RECALL = 0.988
_SAMPLE_ROWS = 512
# Looking at a row costs up to twice as much here as in exact search, by measurement.
MOST_LOOKED_AT = 0.5
# Similarities this close are a tie: any of the tied rows is a right answer.
_TIE = 2e-6


@dataclass(frozen=True, kw_only=True)
class Approximation:
    ids: Ids  # (N, k)
    recall: float
    n_cells: int
    n_probes: int


@dataclass(frozen=True)
class Sample:
    """Rows whose true neighbors are known."""

    rows: Ids  # (S,)
    truth: Ids  # (S, k)


def approximate_neighbors(
    features: Features,
    k: int,
    *,
    seed: int = 0,
    memory_bytes: int,
    progress: Progress | None = None,
) -> Approximation | None:
    """Neighbors with a recall of at least 0.98, or None if exact search would be faster.

    Two samples have their neighbors searched exactly: the first one chooses how many cells are
    looked at for each row, the second one measures the recall of the result.
    """
    dtype = storage_dtype(features.size, memory_bytes)
    if dtype is None:
        return None
    rng = np.random.default_rng(seed)
    n = len(features)
    tally = Tally(n, progress)
    cells = build_cells(features, dtype, rng, tally)
    choosing, judging = draw_samples(features, k, rng, tally)
    by_nearness = cells_by_nearness(features, cells, choosing.rows)
    probes = needed_probes(cells, choosing, by_nearness)
    while looked_at(cells, by_nearness, probes) < MOST_LOOKED_AT:
        ids = scan_cells(cells, k, probes, tally, weight=0.8)
        recall = measure_recall(features, judging, ids[judging.rows])
        if recall >= LEAST_RECALL:
            return Approximation(
                ids=ids, recall=recall, n_cells=len(cells.centroids), n_probes=probes
            )
        probes += max(1, probes // 2)
    return None


def storage_dtype(size: int, memory_bytes: int) -> type[np.floating] | None:
    """What the sorted copy of the features is kept in; None if it does not fit at all."""
    if 4 * size <= memory_bytes:
        return np.float32
    if 2 * size <= memory_bytes:
        return np.float16
    return None


def measure_recall(features: Features, sample: Sample, found: Ids) -> float:
    """The share of found rows that are as similar as the true neighbors: ties count as right."""
    right = 0
    for row, truth, ids in zip(sample.rows, sample.truth, found, strict=True):
        query = unit_rows(features, np.array([row]))[0]
        last = (unit_rows(features, truth) @ query).min()
        right += int((unit_rows(features, ids) @ query >= last - _TIE).sum())
    return float(right / found.size)


def draw_samples(
    features: Features, k: int, rng: np.random.Generator, tally: Tally
) -> tuple[Sample, Sample]:
    n = len(features)
    rows = rng.choice(n, min(2 * _SAMPLE_ROWS, n), replace=False)
    queries = unit_rows(features, rows)
    near = nearest(features, queries, k + 1, tally, weight=0.1 * n / len(rows))
    truth = without_self(near, rows)
    half = len(rows) // 2
    return Sample(rows[:half], truth[:half]), Sample(rows[half:], truth[half:])


def cells_by_nearness(features: Features, cells: Cells, rows: Ids) -> Ids:
    """All cells for each of these rows, nearest first: (S, C)."""
    scores = unit_rows(features, rows) @ cells.centroids.T
    return np.argsort(-scores, axis=1, kind="stable")


def needed_probes(cells: Cells, sample: Sample, by_nearness: Ids) -> int:
    """The fewest cells a row that hold enough of the sample's true neighbors."""
    rank = np.argsort(by_nearness, axis=1)  # (S, C), the inverse of each permutation
    ranks = np.sort(np.take_along_axis(rank, cells.cell_of[sample.truth], axis=1), axis=None)
    return int(ranks[int(np.ceil(_TARGET_RECALL * len(ranks))) - 1]) + 1


def looked_at(cells: Cells, by_nearness: Ids, probes: int) -> float:
    """The share of all rows that are in a row's nearest cells."""
    sizes = np.diff(cells.starts)
    return float(sizes[by_nearness[:, :probes]].sum(axis=1).mean() / len(cells.row_at))
