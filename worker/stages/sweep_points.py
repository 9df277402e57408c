"""The points of a sweep: one training per value of the setting, and its files."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from temi.analysis.choice import BetaCurve, BetaPoint, choose_beta, doubt
from temi.analysis.cluster_count import CountPoint, suggest_counts
from temi.config import TrainConfig
from worker.stages.artifacts import load_json
from worker.stages.evaluation import EvaluationFiles
from worker.stages.mining import PairedJob


@dataclass(frozen=True)
class SweepJob(PairedJob):
    @property
    def parameter(self) -> str:
        return str(self.context.job.config["parameter"])

    @cached_property
    def configs(self) -> list[TrainConfig]:
        """One configuration per value, in ascending order."""
        return [TrainConfig.from_dict(values) for values in self.context.job.config["train"]]

    @property
    def n_neighbors(self) -> int:
        """The maximum over all configurations: each training uses the nearest it needs."""
        return max(config.n_neighbors or 1 for config in self.configs)

    @property
    def n_clusters(self) -> int:
        return max(config.n_clusters for config in self.configs)

    @property
    def total_steps(self) -> int:
        return sum(config.steps or 0 for config in self.configs)

    @cached_property
    def points(self) -> list["SweepPoint"]:
        return [SweepPoint(self, number) for number in range(len(self.configs))]

    @property
    def done(self) -> bool:
        return all(point.done for point in self.points)


@dataclass(frozen=True)
class SweepPoint:
    """The files of one point; its figures are written last."""

    job: SweepJob
    number: int

    @property
    def config(self) -> TrainConfig:
        return self.job.configs[self.number]

    @property
    def step(self) -> int:
        """Of its point in the job's curve."""
        return self.number + 1

    @property
    def figures_key(self) -> str:
        return f"{self.job.folder}/point-{self.number:02d}.json"

    @property
    def model_key(self) -> str:
        return f"{self.job.folder}/model-{self.number:02d}.safetensors"

    @property
    def evaluated(self) -> EvaluationFiles:
        return EvaluationFiles(self.job, f"-{self.number:02d}")

    @property
    def done(self) -> bool:
        return self.job.storage.exists(self.figures_key)

    def figures(self) -> dict[str, Any]:
        """The value of the setting, and the figures of its training."""
        return load_json(self.job.storage, self.figures_key)


def suggest(job: SweepJob, figures: Sequence[dict[str, Any]]) -> float | int | None:
    """Returns the value that the results suggest, or None."""
    if job.parameter == "beta":
        betas = tuple(BetaPoint(**each) for each in figures)
        return choose_beta(BetaCurve(n_clusters=job.n_clusters, points=betas))
    counts = plausible_counts(figures)
    return counts[0] if counts else None


def plausible_counts(figures: Sequence[dict[str, Any]]) -> tuple[int, ...]:
    """Returns up to three numbers of clusters, the best first."""
    names = ("n_clusters", "stability", "modularity")
    known = [each for each in figures if each["stability"] is not None]
    return suggest_counts([CountPoint(**{name: each[name] for name in names}) for each in known])


def kept_points(
    job: SweepJob, figures: Sequence[dict[str, Any]], suggested: float | None
) -> list[SweepPoint]:
    """Returns the points whose clusterings are kept: all, or as many around the suggested one as
    the limit allows. The suggested one is the last, so that its model version is the latest; if
    there is none, it is the one with the least doubt."""
    values = [each[job.parameter] for each in figures]
    doubts = [
        doubt(each["conditional_entropy"], point.config.n_clusters)
        for each, point in zip(figures, job.points, strict=True)
    ]
    center = doubts.index(min(doubts)) if suggested is None else values.index(suggested)
    images = len(job.embedding.features())
    most = max(1, job.context.runtime.settings.max_sweep_assignments // images)
    nearest = sorted(job.points, key=lambda point: abs(point.number - center))[:most]
    return sorted(nearest, key=lambda point: (point.number == center, point.number))
