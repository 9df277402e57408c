"""A neighbor search in parts; every process with the features and the plan gets the same result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError
from temi.neighbors.cells import CellIds, Cells, build_cells, sort_into_cells
from temi.neighbors.exact import exact_part
from temi.neighbors.gpu import gpu_count
from temi.neighbors.parallel import Progress, ProgressCounter
from temi.neighbors.recall import (
    MIN_RECALL,
    RecallSample,
    choose_n_probes,
    draw_samples,
    measure_recall,
    rank_cells,
    scanned_share,
)
from temi.neighbors.rows import Features, Floats, Ids
from temi.neighbors.scan import scan_part

# Scanning a row in a cell costs up to twice as much as in exact search, by measurement.
MAX_SCANNED_SHARE = 0.5

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class ApproximateNeighbors:
    ids: Ids  # (N, k)
    recall: float
    n_cells: int
    n_probes: int


@dataclass(frozen=True, kw_only=True)
class IvfPlan:
    """The trained inverted file and its n_probes, without the rows; small beside the features."""

    centroids: Floats
    cell_of: CellIds
    dtype: str  # of the sorted rows
    n_probes: int
    tuning_rows: Ids  # (S,), the sample that n_probes was chosen for
    validation: RecallSample

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "centroids": self.centroids,
            "cell_of": self.cell_of,
            "row_bytes": np.array(np.dtype(self.dtype).itemsize),
            "n_probes": np.array(self.n_probes),
            "tuning_rows": self.tuning_rows,
            "validation_rows": self.validation.rows,
            "validation_neighbors": self.validation.neighbors,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "IvfPlan":
        return cls(
            centroids=arrays["centroids"],
            cell_of=arrays["cell_of"],
            dtype=f"float{8 * int(arrays['row_bytes'])}",
            n_probes=int(arrays["n_probes"]),
            tuning_rows=arrays["tuning_rows"],
            validation=RecallSample(arrays["validation_rows"], arrays["validation_neighbors"]),
        )


@dataclass(frozen=True, kw_only=True)
class ShardedSearch:
    """A search whose parts can be run by several processes; without a plan it is exact."""

    features: Features
    k: int
    plan: IvfPlan | None = None
    cells: Cells | None = None

    @classmethod
    def create(
        cls,
        features: Features,
        k: int,
        *,
        memory_bytes: int,
        seed: int = 0,
        counter: ProgressCounter | None = None,
    ) -> "ShardedSearch":
        """Train an inverted file if it reaches the recall faster than exact search."""
        exact = cls(features=features, k=k)
        dtype = storage_dtype(features.size, memory_bytes)
        if dtype is None:
            return exact
        rng = np.random.default_rng(seed)
        counter = counter or ProgressCounter(len(features), None)
        cells = build_cells(features, dtype, rng, counter)
        tuning, validation = draw_samples(features, k, rng, counter)
        plan = IvfPlan(
            centroids=cells.centroids,
            cell_of=cells.cell_of,
            dtype=np.dtype(dtype).name,
            n_probes=choose_n_probes(cells, tuning, rank_cells(features, cells, tuning.rows)),
            tuning_rows=tuning.rows,
            validation=validation,
        )
        return replace(exact, plan=plan, cells=cells)._unless_exact_is_faster()

    @classmethod
    def from_plan(cls, features: Features, k: int, *, plan: IvfPlan | None) -> "ShardedSearch":
        """Use a plan of another process, or of an earlier attempt; None searches exactly."""
        if not can_shard_search():
            raise TemiError("a sharded search runs on CPUs only, but this machine has a GPU")
        cells = None
        if plan is not None:
            cells = sort_into_cells(features, plan.centroids, plan.cell_of, plan.dtype)
        return cls(features=features, k=k, plan=plan, cells=cells)

    def search_part(self, part: slice, progress: Progress | None = None) -> Ids:
        """Return the neighbors of a part: (part, k); see ``store_part`` for the rows it means."""
        counter = ProgressCounter(part.stop - part.start, progress)
        if self.plan is None or self.cells is None:
            return exact_part(self.features, part, self.k, counter)
        return scan_part(self.cells, part, self.k, self.plan.n_probes, counter)

    def store_part(self, out: Ids, part: slice, ids: Ids) -> None:
        """Write the neighbors of a part into ``out`` (N, k).

        A part is a slice of the rows, or with a plan, of the rows in the order of their cells.
        """
        out[part if self.cells is None else self.cells.row_at[part]] = ids

    def check_recall(self, ids: Ids) -> ApproximateNeighbors | None:
        """Return the result with its recall; None if the search is exact or the recall too low."""
        if self.plan is None:
            return None
        sample = self.plan.validation
        recall = measure_recall(self.features, sample, ids[sample.rows])
        if recall < MIN_RECALL:
            return None
        return ApproximateNeighbors(
            ids=ids,
            recall=recall,
            n_cells=len(self.plan.centroids),
            n_probes=self.plan.n_probes,
        )

    def with_more_probes(self) -> "ShardedSearch":
        """Return the search to run next if the recall is too low."""
        assert self.plan is not None
        n_probes = self.plan.n_probes + max(1, self.plan.n_probes // 2)
        return replace(self, plan=replace(self.plan, n_probes=n_probes))._unless_exact_is_faster()

    def _unless_exact_is_faster(self) -> "ShardedSearch":
        assert self.plan is not None
        assert self.cells is not None
        ranked = rank_cells(self.features, self.cells, self.plan.tuning_rows)
        if scanned_share(self.cells, ranked, self.plan.n_probes) < MAX_SCANNED_SHARE:
            return self
        return replace(self, plan=None, cells=None)


def storage_dtype(size: int, memory_bytes: int) -> type[np.floating] | None:
    """Return the dtype of the sorted copy of the features, or None if no copy fits."""
    if 4 * size <= memory_bytes:
        return np.float32
    if 2 * size <= memory_bytes:
        return np.float16
    return None


def can_shard_search() -> bool:
    """Return False with a GPU: one GPU is faster than the CPU cores of several machines."""
    return gpu_count() == 0
