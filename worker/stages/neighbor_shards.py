"""Neighbors of large datasets, searched in shards of rows.

All shards use the same index cells, which are stored as a file.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from app.core.jobs.shards import ShardSpec
from app.core.storage import Storage
from temi.neighbors.search import Neighbors
from temi.neighbors.sharded import IvfPlan, ShardedSearch
from worker.context import JobContext
from worker.stages.artifacts import content_key, load_array
from worker.stages.sharded_stage import Advance, ShardedStage

_STAGE = "mine"
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ShardedMining:
    """The search for the neighbors of one array of features."""

    context: JobContext
    features: npt.NDArray[np.float32]
    features_key: str
    name: str  # prefix of the keys of all files
    k: int

    @property
    def storage(self) -> Storage:
        return self.context.runtime.storage

    @property
    def cells_key(self) -> str:
        return f"{self.name}-cells.safetensors"

    def run(self) -> Neighbors:
        search = self._begin()
        while True:
            ids = self._search(search)
            with self.context.computing():
                found = search.check_recall(ids)
            if found is not None:
                return Neighbors(method="approximate", **vars(found))
            if search.plan is None:
                return Neighbors(ids=ids, method="exact", recall=1.0)
            self.context.log("Too many neighbors were missed; more cells will be searched.")
            with self.context.computing():
                search = search.with_more_probes()

    def delete_cells(self) -> None:
        """To be called once the neighbors are saved."""
        self.storage.delete(self.cells_key)

    def _begin(self) -> ShardedSearch:
        """Uses the cells of an earlier attempt, whose finished shards depend on them."""
        with self.context.computing():  # k-means of faiss reports no progress
            return self._load_or_train_cells()

    def _load_or_train_cells(self) -> ShardedSearch:
        k = min(self.k, len(self.features) - 1)
        if self.storage.exists(self.cells_key):
            plan = load_cells(self.storage, self.cells_key)
            return ShardedSearch.from_plan(self.features, k, plan=plan)
        search = ShardedSearch.create(
            self.features, k, memory_bytes=self.context.runtime.settings.mine_bytes
        )
        if search.plan is not None:
            self.storage.write(self.cells_key, safetensors.numpy.save(search.plan.arrays()))
        return search

    def _search(self, search: ShardedSearch) -> Ids:
        stage = self._sharded_stage(search)
        progress = self.context.start_progress(_STAGE, total=len(self.features))
        stage.run(MineShard(search), progress)
        ids = np.empty((len(self.features), search.k), dtype=np.int64)
        for shard in stage.shards:
            search.store_part(ids, _rows(shard), load_array(self.storage, shard.key))
        for shard in stage.shards:
            self.storage.delete(shard.key)
        return ids

    def _sharded_stage(self, search: ShardedSearch) -> ShardedStage:
        rows, n = self.context.runtime.settings.mine_shard, len(self.features)
        plan = {
            "task": "mine",
            "features": self.features_key,
            "k": search.k,
            "cells": None if search.plan is None else self.cells_key,
            "probes": None if search.plan is None else search.plan.n_probes,
        }
        name = content_key(plan, rows, _digest(search.plan))
        return ShardedStage(
            context=self.context,
            stage=_STAGE,
            plan_key=f"{self.name}-plan-{name}.json",
            plan=plan,
            shards=[
                ShardSpec(f"{self.name}-part-{name}-{start}.npy", start, min(rows, n - start))
                for start in range(0, n, rows)
            ],
            needs="cpu",
        )


@dataclass(frozen=True)
class MineShard:
    """Searches the neighbors of a shard's rows."""

    search: ShardedSearch

    def __call__(self, shard: ShardSpec, advance: Advance) -> Ids:
        reported = 0

        def report(done: int, _total: int) -> None:
            nonlocal reported
            if done > reported:
                advance(done - reported)
                reported = done

        return self.search.search_part(_rows(shard), report)


def prepare_mine_shard(context: JobContext, _stage: str, plan: dict[str, Any]) -> MineShard:
    """For a worker that does not hold the job."""
    storage = context.runtime.storage
    cells = None
    if plan["cells"] is not None:
        cells = replace(load_cells(storage, plan["cells"]), n_probes=plan["probes"])
    features = load_array(storage, plan["features"])
    with context.computing():
        search = ShardedSearch.from_plan(features, plan["k"], plan=cells)
    return MineShard(search)


def load_cells(storage: Storage, key: str) -> IvfPlan:
    return IvfPlan.from_arrays(safetensors.numpy.load(storage.read(key)))


def _rows(shard: ShardSpec) -> slice:
    return slice(shard.first, shard.first + shard.rows)


def _digest(plan: IvfPlan | None) -> str | None:
    if plan is None:
        return None
    return hashlib.sha256(plan.centroids.tobytes() + plan.cell_of.tobytes()).hexdigest()
