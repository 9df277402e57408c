"""Mean and standard deviation of an experiment over several seeds."""

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from temi.errors import TemiError


@dataclass(frozen=True, kw_only=True)
class MetricSummary:
    mean: float
    std: float | None  # of the sample (n - 1); None for a single seed
    values: tuple[float, ...]  # in the order of the seeds


@dataclass(frozen=True, kw_only=True)
class SeedSummary:
    seeds: tuple[int, ...]
    metrics: Mapping[str, MetricSummary]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_seeds(train_one: Callable[[int], Mapping[str, float]], seeds: Iterable[int]) -> SeedSummary:
    """Call ``train_one`` with each seed and summarize every metric that it returns."""
    seeds = tuple(seeds)
    if not seeds:
        raise TemiError("at least one seed is needed")
    if len(set(seeds)) < len(seeds):
        raise TemiError(f"seeds must be different, but {list(seeds)} contains a seed twice")
    runs = [train_one(seed) for seed in seeds]
    for seed, run in zip(seeds, runs, strict=True):
        if run.keys() != runs[0].keys():
            raise TemiError(
                f"seed {seed} returned the metrics {sorted(run)}, "
                f"but seed {seeds[0]} returned {sorted(runs[0])}"
            )
    return SeedSummary(
        seeds=seeds,
        metrics={name: _summarize(tuple(float(run[name]) for run in runs)) for name in runs[0]},
    )


def _summarize(values: tuple[float, ...]) -> MetricSummary:
    return MetricSummary(
        mean=statistics.fmean(values),
        std=statistics.stdev(values) if len(values) > 1 else None,
        values=values,
    )
