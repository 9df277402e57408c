"""The mine stage: which rows are trained on, who their neighbors are, who is a near duplicate."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import safetensors.numpy

from app.core.platform.errors import InvalidRequest
from worker.stages.base import EmbeddedJob, run_stage
from worker.stages.duplicates import (
    FEW,
    NEAR_COSINE,
    NearDuplicates,
    find_near,
    first_rows,
    list_near,
)
from worker.stages.neighbors import NeighborFiles, mine
from worker.stages.training_set import TrainingSet

_NEAR = f"near-{NEAR_COSINE}"
_SETS = {"none": "", "exact": "-exact", "near": f"-{_NEAR}"}


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
        """To leave near duplicates out, they are looked for first, beside no exact ones."""
        return self.exact_set if self.excluded == "near" else self.training

    @property
    def near_neighbors(self) -> int:
        return FEW if self.excluded == "near" else self.n_neighbors

    @cached_property
    def exact_set(self) -> TrainingSet:
        return TrainingSet(self.embedding, _SETS["exact"])


def mine_pairs(job: PairedJob) -> None:
    """The stage, and the list of near duplicates for those who look at the dataset."""
    run_stage(job.context, "mine", lambda: _mine(job), done=job.mined)
    list_near(job.context, job.near())


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
    mine(job.context, features, job.neighbors)
    _find_near(job, first)


def _find_near(job: PairedJob, first: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> None:
    if job.storage.exists(job.near_key):
        return
    source = job.near_source
    files = source.neighbors(job.near_neighbors)
    mine(job.context, source.features(), files)
    with job.context.computing():
        near = find_near(job.embedding.features(), files.ids(), source.rows, first)
    job.storage.write(job.near_key, safetensors.numpy.save(vars(near)))


def _check_enough(job: PairedJob, left: int) -> None:
    if left < job.n_clusters:
        raise InvalidRequest.field(
            "n_clusters",
            f"{job.n_clusters} clusters need at least as many images, but without duplicates "
            f"{left} are left",
        )
