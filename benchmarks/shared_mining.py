"""Neighbor search by several workers: equality of the results, recall, and time on many hosts.

.venv/bin/python -m benchmarks.shared_mining --rows 300000 --shard 20000 --processes 1 2 4

Processes that share only the files of features and plan take parts from one queue, as workers do.
The time on more hosts is simulated from the seconds of each part when it ran alone.
"""

import argparse
import hashlib
import heapq
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from benchmarks.mining import K, write_features
from temi.neighbors.parallel import ProgressCounter
from temi.neighbors.recall import draw_samples, measure_recall
from temi.neighbors.rows import Ids
from temi.neighbors.search import MEMORY_BYTES
from temi.neighbors.sharded import IvfPlan, ShardedSearch

_HOSTS = (1, 2, 4, 16, 50)
_OTHER_SEED = 1_000  # of a sample that the plan has not used


@dataclass(frozen=True)
class Work:
    """Files that all workers can read."""

    folder: Path
    approximate: bool

    @property
    def features(self) -> Any:
        return np.load(self.folder / "features.npy", mmap_mode="r")

    def open(self) -> ShardedSearch:
        plan = None
        if self.approximate:
            arrays = safetensors.numpy.load((self.folder / "cells.safetensors").read_bytes())
            plan = IvfPlan.from_arrays(arrays)
        return ShardedSearch.from_plan(self.features, K, plan=plan)


_search: ShardedSearch


def _start(work: Work) -> None:
    global _search
    _search = work.open()


def _search_part(part: slice) -> tuple[slice, Ids, float]:
    started = time.perf_counter()
    ids = _search.search_part(part)
    return part, ids, time.perf_counter() - started


def make_plan(folder: Path) -> tuple[Work, float]:
    """Return the stored plan and the seconds it took; all workers wait for it."""
    features = np.load(folder / "features.npy", mmap_mode="r")
    started = time.perf_counter()
    search = ShardedSearch.create(features, K, memory_bytes=MEMORY_BYTES)
    seconds = time.perf_counter() - started
    if search.plan is not None:
        (folder / "cells.safetensors").write_bytes(safetensors.numpy.save(search.plan.arrays()))
    return Work(folder, approximate=search.plan is not None), seconds


def search_with(work: Work, shard: int, processes: int) -> tuple[Ids, list[float], float]:
    """Return all neighbors, the seconds of each part, and the total seconds."""
    whole = work.open()
    n = len(whole.features)
    parts = [slice(start, min(start + shard, n)) for start in range(0, n, shard)]
    ids = np.empty((n, K), dtype=np.int64)
    seconds = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _start, (work,)) as pool:
        pool.map(_wait, range(processes))  # until all processes have started
        started = time.perf_counter()
        for part, found, took in pool.imap_unordered(_search_part, parts):
            whole.store_part(ids, part, found)
            seconds.append(took)
        return ids, seconds, time.perf_counter() - started


def _wait(_: int) -> None:
    time.sleep(0.5)


def true_recall(features: Any, ids: Ids) -> float:
    rng = np.random.default_rng(_OTHER_SEED)
    sample, _ = draw_samples(features, K, rng, ProgressCounter(len(features), None))
    return measure_recall(features, sample, ids[sample.rows])


def simulate(seconds: Sequence[float], hosts: int) -> float:
    """Return when the last part is done, if each free host takes the next part."""
    free_at = [0.0] * hosts
    for took in seconds:
        heapq.heappush(free_at, heapq.heappop(free_at) + took)
    return max(free_at)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--shard", type=int, default=20_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="temi-mining-") as folder:
        write_features(Path(folder) / "features.npy", options.rows)
        work, planned = make_plan(Path(folder))
        print(f"{'approximate' if work.approximate else 'exact'}; planned in {planned:.1f} s\n")
        print("| processes | seconds | recall | sha256 of the neighbors |\n|---|---|---|---|")
        alone: list[float] = []
        for count in options.processes:
            ids, seconds, took = search_with(work, options.shard, count)
            alone = alone or seconds
            recall, digest = true_recall(work.features, ids), hashlib.sha256(ids).hexdigest()
            print(f"| {count} | {took:.1f} | {recall:.4f} | {digest[:12]} |", flush=True)
        print("\n| hosts, simulated | seconds with the plan |\n|---|---|")
        for hosts in _HOSTS:
            print(f"| {hosts} | {planned + simulate(alone, hosts):.1f} |")


if __name__ == "__main__":
    main()
