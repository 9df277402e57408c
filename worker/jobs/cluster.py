"""Cluster jobs. Each stage loads artifacts, calls `temi` and saves artifacts.

The key of an artifact is made from what it depends on, so a stage whose artifact exists is skipped:
after a crash, and in other jobs on the same images.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import safetensors.numpy
import torch

from temi.config import TrainConfig
from temi.model import ClusterModel
from temi.training.trainer import TrainReport
from worker.context import JobContext
from worker.stages.artifacts import load_json, save_json
from worker.stages.base import embed, run_stage
from worker.stages.counting import count_clusters, count_key
from worker.stages.curves import TrainingCurve
from worker.stages.evaluation import EvaluationFiles, evaluate_clustering
from worker.stages.learning import LearningFiles, collect_learning
from worker.stages.mining import PairedJob, mine_pairs
from worker.stages.registration import (
    ClusteringResult,
    NewVersion,
    default_labels,
    make_manifest,
    novelty_file,
    register_version,
)
from worker.stages.resumable import run_resumable
from worker.stages.training import open_trainer


@dataclass(frozen=True)
class ClusterJob(PairedJob):
    """The keys of a cluster job's artifacts, and how to load them."""

    @cached_property
    def config(self) -> TrainConfig:
        return TrainConfig.from_dict(self.context.job.config["train"])

    @property
    def n_neighbors(self) -> int:
        assert self.config.n_neighbors is not None  # resolved when the job was created
        return self.config.n_neighbors

    @property
    def n_clusters(self) -> int:
        return self.config.n_clusters

    @cached_property
    def learning(self) -> LearningFiles:
        return LearningFiles(self)

    @property
    def model_key(self) -> str:
        return f"{self.folder}/model.safetensors"

    @property
    def training_key(self) -> str:
        return f"{self.folder}/training.json"

    def model(self) -> ClusterModel:
        tensors = safetensors.numpy.load(self.storage.read(self.model_key))
        return ClusterModel.from_tensors(tensors, self.config.temperature)


def run_cluster(context: JobContext) -> None:
    torch.set_num_threads(context.runtime.settings.threads)
    job = ClusterJob(context)
    collect_learning(job.learning)
    embed(job)
    count_clusters(job)
    mine_pairs(job)
    run_stage(context, "train", lambda: train(job), done=job.storage.exists(job.training_key))
    run_stage(context, "evaluate", lambda: evaluate(job), done=EvaluationFiles(job).done)
    register(job)


def train(job: ClusterJob) -> None:
    features = job.training.features()
    curve = TrainingCurve(job.context, len(features), job.n_clusters)
    known = job.learning.constraints()
    with open_trainer(job.context, features, job.neighbors.ids(), job.config, known) as trainer:

        def save(report: TrainReport) -> None:
            job.storage.write(job.model_key, safetensors.numpy.save(trainer.finish().tensors()))
            summary = {
                "steps": trainer.step,
                "loss": report.loss,
                "settled": report.settled,
                "select": job.config.select,
                "agreement": trainer.agreement,
            }
            save_json(job.storage, job.training_key, summary)

        run_resumable(job, "train", trainer, on_report=partial(curve.add, trainer), save=save)


def evaluate(job: ClusterJob) -> None:
    features, model = job.embedding.features(), job.model()
    metrics, assignments = evaluate_clustering(
        job.context,
        features,
        model,
        job.config,
        job.neighbors.ids(),
        job.training.rows,
    )
    learned = job.learning.learned
    if learned is not None:
        kept = learned.keep(assignments.cluster, features, model)
        assignments = replace(assignments, cluster=kept)
    EvaluationFiles(job).save(metrics, assignments)


def register(job: ClusterJob) -> None:
    evaluated = EvaluationFiles(job)
    metrics = evaluated.metrics() | {
        "training": load_json(job.storage, job.training_key),
        "neighbors": job.neighbors.summary(),
    }
    if job.storage.exists(count_key(job)):
        metrics["count"] = load_json(job.storage, count_key(job))
    labels, learned = default_labels(job.n_clusters), job.learning.summary()
    if learned is not None:
        metrics["learning"], labels = learned["learning"], learned["names"]
    result = ClusteringResult(
        assignments=evaluated.assignments(),
        metrics=metrics,
        labels=labels,
        learned=job.learning.learned,
        embedding_folder=job.embedding.folder,
    )
    version = NewVersion(
        name=job.context.job.config["model_name"],
        manifest=make_manifest(job.context, job.backbone, job.config, result),
        tensors={
            "model.safetensors": job.storage.read(job.model_key),
            **novelty_file(job.training.features()),
        },
    )
    register_version(job.context, version, result)
    job.storage.delete(job.checkpoint_key)
