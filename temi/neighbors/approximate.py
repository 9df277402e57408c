"""Approximate search by an inverted file, with a recall that is measured."""

from temi.neighbors.parallel import Progress, ProgressCounter
from temi.neighbors.rows import Features
from temi.neighbors.scan import scan_cells
from temi.neighbors.sharded import ApproximateNeighbors, ShardedSearch


def approximate_neighbors(
    features: Features,
    k: int,
    *,
    seed: int = 0,
    memory_bytes: int,
    progress: Progress | None = None,
) -> ApproximateNeighbors | None:
    """Return neighbors with a recall of at least 0.98, or None if exact search is faster.

    The neighbors of two samples are searched exactly: the first sample determines the number of
    probed cells per query, the second one measures the recall of the result.
    """
    counter = ProgressCounter(len(features), progress)
    search = ShardedSearch.create(
        features, k, memory_bytes=memory_bytes, seed=seed, counter=counter
    )
    while search.plan is not None and search.cells is not None:
        ids = scan_cells(search.cells, k, search.plan.n_probes, counter, weight=0.8)
        found = search.check_recall(ids)
        if found is not None:
            return found
        search = search.with_more_probes()
    return None
