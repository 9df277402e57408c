"""Training over several values of one setting; every finished value survives a crash."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import torch

from app.core.jobs.lifecycle import Progress, finish
from temi.analysis.sweep import (
    BetaCurve,
    BetaPoint,
    SizePoint,
    choose_beta,
    choose_n_clusters,
    train_once,
)
from temi.config import TrainConfig
from worker.context import JobContext
from worker.stages.artifacts import load_json, save_json
from worker.stages.base import embed, run_stage
from worker.stages.evaluation import dataset_labels
from worker.stages.pairs import PairedJob, mine_pairs


@dataclass(frozen=True)
class SweepJob(PairedJob):
    @property
    def parameter(self) -> str:
        return str(self.context.job.config["parameter"])

    @cached_property
    def configs(self) -> list[TrainConfig]:
        """By rising value of what is swept."""
        return [TrainConfig.from_dict(values) for values in self.context.job.config["train"]]

    @property
    def n_neighbors(self) -> int:
        """Mined once for all: a run takes as many of the nearest as it wants."""
        return max(config.n_neighbors or 1 for config in self.configs)

    @property
    def n_clusters(self) -> int:
        return max(config.n_clusters for config in self.configs)

    @property
    def total_steps(self) -> int:
        return sum(config.steps or 0 for config in self.configs)

    def point_key(self, number: int) -> str:
        return f"{self.folder}/point-{number:02d}.json"

    @property
    def done(self) -> bool:
        return all(self.storage.exists(self.point_key(n)) for n in range(len(self.configs)))

    def points(self) -> list[dict[str, Any]]:
        return [load_json(self.storage, self.point_key(n)) for n in range(len(self.configs))]


def run_sweep(context: JobContext) -> None:
    torch.set_num_threads(context.runtime.settings.threads)
    job = SweepJob(context)
    embed(job)
    mine_pairs(job)
    run_stage(context, "sweep", lambda: sweep(job), done=job.done)
    points = job.points()
    result = {"parameter": job.parameter, "points": points, "suggested": suggest(job, points)}
    with context.transaction() as session:
        finish(
            session,
            context.job.id,
            context.fence,
            status="succeeded",
            result=result,
            progress=Progress("sweep", job.total_steps, job.total_steps),
        )


def sweep(job: SweepJob) -> None:
    context = job.context
    labels = dataset_labels(context) or None
    measured, features = job.embedding.features(), job.training.features()
    neighbors = job.neighbors.ids()
    meter = context.meter("sweep", total=job.total_steps)
    before = 0
    for number, config in enumerate(job.configs):
        if not job.storage.exists(job.point_key(number)):
            with context.computing():  # it tells of steps, but not of what it measures after them
                figures = train_once(
                    features,
                    neighbors,
                    config,
                    measured=measured,
                    labels=labels,
                    device=context.runtime.settings.device,
                    progress=lambda done, _total, before=before: meter.to(before + done),  # type: ignore[misc]
                )
            point = {job.parameter: getattr(config, job.parameter), **asdict(figures)}
            save_json(job.storage, job.point_key(number), point)
        before += config.steps or 0
        meter.to(before)
        meter.checkpoint()
        context.curve(number + 1, load_json(job.storage, job.point_key(number)))


def suggest(job: SweepJob, points: list[dict[str, Any]]) -> float | int | None:
    """The value that the figures speak for, or none if they speak for none."""
    if job.parameter == "beta":
        betas = tuple(BetaPoint(**point) for point in points)
        return choose_beta(BetaCurve(n_clusters=job.n_clusters, points=betas))
    return choose_n_clusters([SizePoint(**point) for point in points])
