"""The rows of an embedding that a job trains on: all of them, or those that are no duplicates."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from worker.stages.artifacts import gather_rows, load_array, save_array
from worker.stages.embedding import EmbeddingFiles
from worker.stages.neighbors import NeighborFiles


@dataclass(frozen=True)
class TrainingSet:
    """`name` says how the rows were chosen; it is empty for all of them."""

    embedding: EmbeddingFiles
    name: str = ""

    @property
    def rows_key(self) -> str:
        return f"{self.embedding.folder}/rows{self.name}.npy"

    @property
    def done(self) -> bool:
        return not self.name or self.embedding.storage.exists(self.rows_key)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64] | None:
        """Rows of the embedding, rising; None if nothing was left out."""
        if not self.name:
            return None
        rows = load_array(self.embedding.storage, self.rows_key)
        return None if len(rows) == len(self.embedding.features()) else rows

    def features(self) -> npt.NDArray[np.float32]:
        return load_array(self.embedding.storage, self._trained_key)

    def neighbors(self, k: int) -> NeighborFiles:
        name = "" if self.rows is None else self.name
        prefix = f"{self.embedding.folder}/neighbors{name}"
        return NeighborFiles(self.embedding.storage, prefix, k, self._trained_key)

    def save(self, rows: npt.NDArray[np.int64]) -> None:
        """The features of these rows as a file, to be memory-mapped, and then the rows."""
        storage, embedding = self.embedding.storage, self.embedding
        if len(rows) < len(embedding.features()):
            one = np.zeros(len(rows), dtype=np.int32)
            gather_rows(storage, self._features_key, [embedding.features_key], one, rows)
        save_array(storage, self.rows_key, rows)

    @property
    def _trained_key(self) -> str:
        return self.embedding.features_key if self.rows is None else self._features_key

    @property
    def _features_key(self) -> str:
        return f"{self.embedding.folder}/features{self.name}.npy"
