"""Sweep jobs: train with several values of one setting; finished values survive a crash."""

from dataclasses import asdict

import safetensors.numpy
import torch

from temi.analysis.choice import RunFigures
from temi.analysis.sweep import train_model
from worker.context import JobContext, ProgressReporter
from worker.stages.artifacts import save_json
from worker.stages.base import embed, run_stage
from worker.stages.counting import compare_counts
from worker.stages.evaluation import assign, dataset_labels, measure
from worker.stages.mining import mine_pairs
from worker.stages.sweep_points import SweepJob, SweepPoint
from worker.stages.sweep_registration import register_points


def run_sweep(context: JobContext) -> None:
    torch.set_num_threads(context.runtime.settings.threads)
    job = SweepJob(context)
    embed(job)
    mine_pairs(job)
    run_stage(context, "sweep", lambda: sweep(job), done=job.done)
    register_points(job)


def sweep(job: SweepJob) -> None:
    context, labels = job.context, dataset_labels(job.context)
    progress = context.start_progress("sweep", total=job.total_steps)
    before, counts = 0, _compared_counts(job)
    for point in job.points:
        if not point.done:
            with context.computing():  # it reports steps, but not the evaluation after them
                train_point(point, labels, counts, progress, before)
        before += point.config.steps or 0
        progress.advance_to(before)
        progress.checkpoint()
        context.add_curve(point.step, point.figures())


def _compared_counts(job: SweepJob) -> dict[int, dict[str, float]]:
    if job.parameter != "n_clusters" or job.done:
        return {}
    return compare_counts(job, [config.n_clusters for config in job.configs], job.configs[0].seed)


def train_point(
    point: SweepPoint,
    labels: list[str | None],
    counts: dict[int, dict[str, float]],
    progress: ProgressReporter,
    before: int,
) -> None:
    """`counts` are figures of numbers of clusters; `before` is the number of steps of the earlier
    points."""
    job, config = point.job, point.config
    features, neighbors = job.embedding.features(), job.neighbors.ids()
    model, report = train_model(
        job.training.features(),
        neighbors,
        config,
        device=job.context.runtime.settings.device,
        progress=lambda done, _total: progress.advance_to(before + done),
    )
    metrics, assignments = measure(
        assign(features, model),
        features,
        labels,
        neighbors=neighbors[:, : config.n_neighbors],
        rows=job.training.rows,
    )
    figures = RunFigures(
        occupancy_entropy=metrics["occupancy_entropy"],
        conditional_entropy=metrics["conditional_entropy"],
        mean_probability=metrics["mean_probability"],
        size_kl=metrics["size_kl"],
        loss=report.loss,
        accuracy=metrics["temi"] and metrics["temi"]["accuracy"],
    )
    training = {"steps": report.step, "loss": report.loss, "settled": report.settled}
    job.storage.write(point.model_key, safetensors.numpy.save(model.tensors()))
    point.evaluated.save(metrics | {"training": training}, assignments)
    value = {job.parameter: getattr(config, job.parameter)}
    if job.parameter == "n_clusters":
        count = counts.get(config.n_clusters, {})
        value |= {name: count.get(name) for name in ("stability", "modularity")}
    save_json(job.storage, point.figures_key, value | asdict(figures))
