"""The mine stage: the rows to train on, their neighbors, and near duplicates."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from app.core.platform.errors import InvalidRequest
from worker.stages.artifacts import gather_rows, load_array, save_array
from worker.stages.base import EmbeddedJob, run_stage
from worker.stages.duplicates import (
    DUPLICATE_NEIGHBORS,
    NEAR_COSINE,
    NearDuplicates,
    find_near,
    first_rows,
    save_near,
)
from worker.stages.embedding import EmbeddingFiles
from worker.stages.neighbors import NeighborFiles, mine_features

_NEAR = f"near-{NEAR_COSINE}"
_SETS = {"none": "", "exact": "-exact", "near": f"-{_NEAR}"}


@dataclass(frozen=True)
class TrainingSet:
    """The rows of an embedding that a job trains on. `name` is empty for all rows, else it says
    which duplicates are left out."""

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
        """Rows of the embedding in ascending order; None for all."""
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
        """Writes the features of these rows as a file to be memory-mapped, then the rows."""
        storage, embedding = self.embedding.storage, self.embedding
        if len(rows) < len(embedding.features()):
            source = np.zeros(len(rows), dtype=np.int32)
            gather_rows(storage, self._features_key, [embedding.features_key], source, rows)
        save_array(storage, self.rows_key, rows)

    @property
    def _trained_key(self) -> str:
        return self.embedding.features_key if self.rows is None else self._features_key

    @property
    def _features_key(self) -> str:
        return f"{self.embedding.folder}/features{self.name}.npy"


@dataclass(frozen=True)
class PairedJob(EmbeddedJob):
    """A job that trains on pairs of neighbors."""

    @property
    def n_neighbors(self) -> int:
        raise NotImplementedError

    @property
    def n_clusters(self) -> int:
        raise NotImplementedError

    @cached_property
    def training(self) -> TrainingSet:
        return TrainingSet(self.embedding, _SETS[self.excluded])

    @property
    def neighbors(self) -> NeighborFiles:
        return self.training.neighbors(self.n_neighbors)

    @property
    def mined(self) -> bool:
        return self.training.done and self.neighbors.done and self.storage.exists(self.near_key)

    @property
    def near_key(self) -> str:
        files = self.near_source.neighbors(self.near_neighbors)
        return f"{files.prefix}-{files.k}-{_NEAR}.safetensors"

    def near(self) -> NearDuplicates:
        return NearDuplicates(**safetensors.numpy.load(self.storage.read(self.near_key)))

    @property
    def excluded(self) -> str:
        return str(self.context.job.config.get("exclude_duplicates", "none"))

    @property
    def near_source(self) -> TrainingSet:
        """To leave near duplicates out, they are searched first, among rows without exact ones."""
        return self.exact_set if self.excluded == "near" else self.training

    @property
    def near_neighbors(self) -> int:
        return DUPLICATE_NEIGHBORS if self.excluded == "near" else self.n_neighbors

    @cached_property
    def exact_set(self) -> TrainingSet:
        return TrainingSet(self.embedding, _SETS["exact"])


def mine_pairs(job: PairedJob) -> None:
    """Runs the mine stage, and stores the near duplicates of the dataset."""
    run_stage(job.context, "mine", lambda: _mine(job), done=job.mined)
    save_near(job.context, job.near())


def _mine(job: PairedJob) -> None:
    first = first_rows(job.embedding.hashes())
    kept = np.flatnonzero(first == np.arange(len(first)))
    if job.excluded != "none" and not job.exact_set.done:
        job.exact_set.save(kept)
    if job.excluded == "near":
        _find_near(job, first)
        if not job.training.done:
            job.training.save(np.setdiff1d(kept, job.near().row))
    features = job.training.features()
    _check_enough(job, len(features))
    mine_features(job.context, features, job.neighbors)
    _find_near(job, first)


def _find_near(job: PairedJob, first: npt.NDArray[np.int64]) -> None:
    if job.storage.exists(job.near_key):
        return
    source = job.near_source
    files = source.neighbors(job.near_neighbors)
    mine_features(job.context, source.features(), files)
    with job.context.computing():
        near = find_near(job.embedding.features(), files.ids(), source.rows, first)
    job.storage.write(job.near_key, safetensors.numpy.save(vars(near)))


def _check_enough(job: PairedJob, left: int) -> None:
    if left < job.n_clusters:
        raise InvalidRequest.field(
            "n_clusters",
            f"{job.n_clusters} clusters need at least as many images, but only {left} remain "
            "without duplicates",
        )
