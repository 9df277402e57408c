"""Sweep jobs: train with several values of one setting; finished values survive a crash."""

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
from worker.stages.mining import PairedJob, mine_pairs


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
    progress = context.start_progress("sweep", total=job.total_steps)
    before = 0
    for number, config in enumerate(job.configs):
        if not job.storage.exists(job.point_key(number)):
            with context.computing():  # it reports steps, but not the evaluation after them
                figures = train_once(
                    features,
                    neighbors,
                    config,
                    measured=measured,
                    labels=labels,
                    device=context.runtime.settings.device,
                    progress=lambda done, _total, before=before: progress.advance_to(before + done),  # type: ignore[misc]
                )
            point = {job.parameter: getattr(config, job.parameter), **asdict(figures)}
            save_json(job.storage, job.point_key(number), point)
        before += config.steps or 0
        progress.advance_to(before)
        progress.checkpoint()
        context.add_curve(number + 1, load_json(job.storage, job.point_key(number)))


def suggest(job: SweepJob, points: list[dict[str, Any]]) -> float | int | None:
    """Returns the value that the results suggest, or None."""
    if job.parameter == "beta":
        betas = tuple(BetaPoint(**point) for point in points)
        return choose_beta(BetaCurve(n_clusters=job.n_clusters, points=betas))
    return choose_n_clusters([SizePoint(**point) for point in points])
