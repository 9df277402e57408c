"""The recall of an approximate search, measured on samples whose exact neighbors are known."""

from dataclasses import dataclass

import numpy as np

from temi.neighbors.cells import Cells
from temi.neighbors.exact import nearest
from temi.neighbors.parallel import ProgressCounter
from temi.neighbors.rows import Features, Ids, unit_rows, without_self

MIN_RECALL = 0.98
# Required on the tuning sample, so that the validation sample also reaches MIN_RECALL.
_TARGET_RECALL = 0.988
_SAMPLE_ROWS = 512
# Similarities this close are a tie: any of the tied rows is a correct neighbor.
_TIE = 2e-6


@dataclass(frozen=True)
class RecallSample:
    """Rows with their exact neighbors."""

    rows: Ids  # (S,)
    neighbors: Ids  # (S, k)


def draw_samples(
    features: Features, k: int, rng: np.random.Generator, counter: ProgressCounter
) -> tuple[RecallSample, RecallSample]:
    """Draw a tuning sample, to choose n_probes, and a validation sample, to measure the recall."""
    n = len(features)
    rows = rng.choice(n, min(2 * _SAMPLE_ROWS, n), replace=False)
    queries = unit_rows(features, rows)
    near = nearest(features, queries, k + 1, counter, weight=0.1 * n / len(rows))
    exact = without_self(near, rows)
    half = len(rows) // 2
    return RecallSample(rows[:half], exact[:half]), RecallSample(rows[half:], exact[half:])


def measure_recall(features: Features, sample: RecallSample, found: Ids) -> float:
    """Return the share of found rows that are as similar as the exact neighbors; ties count."""
    correct = 0
    for row, exact, ids in zip(sample.rows, sample.neighbors, found, strict=True):
        query = unit_rows(features, np.array([row]))[0]
        lowest = (unit_rows(features, exact) @ query).min()
        correct += int((unit_rows(features, ids) @ query >= lowest - _TIE).sum())
    return float(correct / found.size)


def rank_cells(features: Features, cells: Cells, rows: Ids) -> Ids:
    """Return all cells for each of these rows, nearest first: (S, C)."""
    scores = unit_rows(features, rows) @ cells.centroids.T
    return np.argsort(-scores, axis=1, kind="stable")


def choose_n_probes(cells: Cells, sample: RecallSample, ranked_cells: Ids) -> int:
    """Return the fewest cells per query that contain enough of the sample's exact neighbors."""
    rank = np.argsort(ranked_cells, axis=1)  # (S, C), the inverse of each permutation
    ranks = np.sort(np.take_along_axis(rank, cells.cell_of[sample.neighbors], axis=1), axis=None)
    return int(ranks[int(np.ceil(_TARGET_RECALL * len(ranks))) - 1]) + 1


def scanned_share(cells: Cells, ranked_cells: Ids, n_probes: int) -> float:
    """Return the mean share of all rows that lie in the ``n_probes`` cells nearest to a query."""
    sizes = np.diff(cells.starts)
    return float(sizes[ranked_cells[:, :n_probes]].sum(axis=1).mean() / len(cells.row_at))
