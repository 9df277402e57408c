"""A search in parts. Whoever has the features and the plan finds the same neighbors of a part."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError
from temi.neighbors.approximate import (
    LEAST_RECALL,
    MOST_LOOKED_AT,
    Approximation,
    Sample,
    cells_by_nearness,
    draw_samples,
    looked_at,
    measure_recall,
    needed_probes,
    storage_dtype,
)
from temi.neighbors.cells import CellIds, Cells, build_cells, sort_into_cells
from temi.neighbors.exact import exact_part
from temi.neighbors.gpu import gpu_count
from temi.neighbors.parallel import Progress, Tally
from temi.neighbors.rows import Features, Floats, Ids
from temi.neighbors.scan import scan_part

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class CellPlan:
    """Which cells there are and how many are looked at: small beside the features."""

    centroids: Floats
    cell_of: CellIds
    dtype: str  # of the sorted rows
    probes: int
    choosing: Ids  # (S,), rows that the probes were chosen for
    judging: Sample

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "centroids": self.centroids,
            "cell_of": self.cell_of,
            "row_bytes": np.array(np.dtype(self.dtype).itemsize),
            "probes": np.array(self.probes),
            "choosing": self.choosing,
            "judging": self.judging.rows,
            "truth": self.judging.truth,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "CellPlan":
        return cls(
            centroids=arrays["centroids"],
            cell_of=arrays["cell_of"],
            dtype=f"float{8 * int(arrays['row_bytes'])}",
            probes=int(arrays["probes"]),
            choosing=arrays["choosing"],
            judging=Sample(arrays["judging"], arrays["truth"]),
        )


@dataclass(frozen=True, kw_only=True)
class PartSearch:
    """All parts of one search; without cells it is an exact one."""

    features: Features
    k: int
    plan: CellPlan | None = None
    cells: Cells | None = None

    @classmethod
    def begin(cls, features: Features, k: int, *, memory_bytes: int, seed: int = 0) -> "PartSearch":
        """By cells if they reach the recall sooner than an exact search ends."""
        exact = cls(features=features, k=k)
        dtype = storage_dtype(features.size, memory_bytes)
        if dtype is None:
            return exact
        rng, tally = np.random.default_rng(seed), Tally(len(features), None)
        cells = build_cells(features, dtype, rng, tally)
        choosing, judging = draw_samples(features, k, rng, tally)
        by_nearness = cells_by_nearness(features, cells, choosing.rows)
        plan = CellPlan(
            centroids=cells.centroids,
            cell_of=cells.cell_of,
            dtype=np.dtype(dtype).name,
            probes=needed_probes(cells, choosing, by_nearness),
            choosing=choosing.rows,
            judging=judging,
        )
        return replace(exact, plan=plan, cells=cells)._unless_exact_is_faster()

    @classmethod
    def resume(cls, features: Features, k: int, *, plan: CellPlan | None) -> "PartSearch":
        """From a plan that was made elsewhere, or earlier."""
        if gpu_count() > 0:
            raise TemiError("parts are searched by CPUs, and this machine has a GPU")
        cells = None
        if plan is not None:
            cells = sort_into_cells(features, plan.centroids, plan.cell_of, plan.dtype)
        return cls(features=features, k=k, plan=plan, cells=cells)

    def find(self, part: slice, progress: Progress | None = None) -> Ids:
        """Neighbors of the rows of a part, or by cells of the rows at its places: (part, k)."""
        tally = Tally(part.stop - part.start, progress)
        if self.plan is None or self.cells is None:
            return exact_part(self.features, part, self.k, tally)
        return scan_part(self.cells, part, self.k, self.plan.probes, tally)

    def put(self, found: Ids, part: slice, ids: Ids) -> None:
        """A part's result to where it belongs in the whole: (N, k)."""
        found[part if self.cells is None else self.cells.row_at[part]] = ids

    def judge(self, ids: Ids) -> Approximation | None:
        """None if it was an exact search, whose recall is 1, or if the recall is missed."""
        if self.plan is None:
            return None
        recall = measure_recall(self.features, self.plan.judging, ids[self.plan.judging.rows])
        if recall < LEAST_RECALL:
            return None
        return Approximation(
            ids=ids,
            recall=recall,
            n_cells=len(self.plan.centroids),
            n_probes=self.plan.probes,
        )

    def widened(self) -> "PartSearch":
        """The next one to try when the recall is missed."""
        assert self.plan is not None
        probes = self.plan.probes + max(1, self.plan.probes // 2)
        return replace(self, plan=replace(self.plan, probes=probes))._unless_exact_is_faster()

    def _unless_exact_is_faster(self) -> "PartSearch":
        assert self.plan is not None
        assert self.cells is not None
        by_nearness = cells_by_nearness(self.features, self.cells, self.plan.choosing)
        if looked_at(self.cells, by_nearness, self.plan.probes) < MOST_LOOKED_AT:
            return self
        return replace(self, plan=None, cells=None)


def can_search_in_parts() -> bool:
    """A GPU is faster alone than its machine's cores together with those of others."""
    return gpu_count() == 0
