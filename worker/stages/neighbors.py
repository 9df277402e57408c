"""The nearest neighbors of every row, stored beside the features that they were found in."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.storage import Storage
from temi.neighbors.search import Neighbors, mine_neighbors
from temi.neighbors.sharded import can_shard_search
from worker.context import JobContext
from worker.stages.artifacts import load_array, load_json, save_array, save_json
from worker.stages.neighbor_shards import Mining


@dataclass(frozen=True)
class NeighborFiles:
    storage: Storage
    prefix: str  # names the features
    k: int
    features_key: str

    @property
    def summary_key(self) -> str:
        """How the neighbors were found; written after them."""
        return f"{self.prefix}-{self.k}.json"

    def ids_key(self, method: str) -> str:
        """Jobs that share an embedding may differ in method, for want of memory for instance."""
        return f"{self.prefix}-{self.k}-{method}.npy"

    @property
    def done(self) -> bool:
        return self.storage.exists(self.summary_key)

    def summary(self) -> dict[str, Any]:
        return load_json(self.storage, self.summary_key)

    def ids(self) -> npt.NDArray[np.int64]:
        return load_array(self.storage, self.ids_key(self.summary()["method"]))


def mine(context: JobContext, features: npt.NDArray[np.float32], files: NeighborFiles) -> None:
    """Unless they are there already."""
    if files.done:
        return
    if len(features) > context.runtime.settings.mine_shard and can_shard_search():
        mining = Mining(
            context=context,
            features=features,
            features_key=files.features_key,
            name=f"{files.prefix}-{files.k}",
            k=files.k,
        )
        _save(files, mining.run())
        mining.drop_files()
    else:
        meter = context.meter("mine", total=len(features))
        with context.computing():
            found = mine_neighbors(
                features,
                files.k,
                memory_bytes=context.runtime.settings.mine_bytes,
                progress=lambda done, _: meter.to(done),
            )
        _save(files, found)
        meter.checkpoint()


def _save(files: NeighborFiles, neighbors: Neighbors) -> None:
    save_array(files.storage, files.ids_key(neighbors.method), neighbors.ids)
    save_json(files.storage, files.summary_key, neighbors.summary())
