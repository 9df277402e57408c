"""The nearest neighbors of every row, stored in the folder of the features."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.storage import Storage
from temi.neighbors.search import Neighbors, mine_neighbors
from temi.neighbors.sharded import can_shard_search
from worker.context import JobContext
from worker.stages.artifacts import load_array, load_json, save_array, save_json
from worker.stages.neighbor_shards import ShardedMining


@dataclass(frozen=True)
class NeighborFiles:
    storage: Storage
    prefix: str  # of the keys; identifies the features
    k: int
    features_key: str

    @property
    def summary_key(self) -> str:
        """How the neighbors were found; written after them."""
        return f"{self.prefix}-{self.k}.json"

    def ids_key(self, method: str) -> str:
        """Jobs that share an embedding may differ in method, for example by their memory."""
        return f"{self.prefix}-{self.k}-{method}.npy"

    @property
    def done(self) -> bool:
        return self.storage.exists(self.summary_key)

    def summary(self) -> dict[str, Any]:
        return load_json(self.storage, self.summary_key)

    def ids(self) -> npt.NDArray[np.int64]:
        return load_array(self.storage, self.ids_key(self.summary()["method"]))


def mine_features(
    context: JobContext, features: npt.NDArray[np.float32], files: NeighborFiles
) -> None:
    """Searches and saves the neighbors unless they exist."""
    if files.done:
        return
    if len(features) > context.runtime.settings.mine_shard and can_shard_search():
        mining = ShardedMining(
            context=context,
            features=features,
            features_key=files.features_key,
            name=f"{files.prefix}-{files.k}",
            k=files.k,
        )
        _save(files, mining.run())
        mining.delete_cells()
    else:
        progress = context.start_progress("mine", total=len(features))
        with context.computing():
            found = mine_neighbors(
                features,
                files.k,
                memory_bytes=context.runtime.settings.mine_bytes,
                progress=lambda done, _: progress.advance_to(done),
            )
        _save(files, found)
        progress.checkpoint()


def _save(files: NeighborFiles, neighbors: Neighbors) -> None:
    save_array(files.storage, files.ids_key(neighbors.method), neighbors.ids)
    save_json(files.storage, files.summary_key, neighbors.summary())
