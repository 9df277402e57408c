"""Finetune jobs: train a model's backbone together with its heads on the images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import safetensors.numpy
import safetensors.torch
import torch

from app.core.models.extractors import converted_backbones, uses_converted
from app.core.models.files import BACKBONE_FILE, MODEL_FILE, load_trainable
from temi.backbones.base import Backbone
from temi.backbones.embedding import Picture
from temi.config import TrainConfig
from temi.finetune import FinetuneConfig, Finetuner, FinetuneReport, backbone_tensors, with_weights
from temi.model import ClusterModel
from worker.context import JobContext
from worker.stages.artifacts import load_json, save_json
from worker.stages.base import ModelJob, embed, run_stage
from worker.stages.curves import CurveSchedule
from worker.stages.embedding import EmbeddingFiles, embed_dataset, read_ahead
from worker.stages.evaluation import EvaluationFiles, evaluate_clustering
from worker.stages.neighbors import NeighborFiles, mine_features
from worker.stages.registration import (
    ClusteringResult,
    NewVersion,
    make_manifest,
    novelty_file,
    register_version,
)
from worker.stages.resumable import run_resumable

_THREADS = 4


@dataclass(frozen=True)
class FinetuneJob(ModelJob):
    @cached_property
    def config(self) -> FinetuneConfig:
        return FinetuneConfig(**self.context.job.config["finetune"])

    @property
    def neighbors(self) -> NeighborFiles:
        assert self.config.n_neighbors is not None  # resolved when the job was created
        embedding, k = self.embedding, self.config.n_neighbors
        return NeighborFiles(
            self.storage, f"{embedding.folder}/neighbors", k, embedding.features_key
        )

    @property
    def model_key(self) -> str:
        return f"{self.folder}/{MODEL_FILE}"

    @property
    def backbone_key(self) -> str:
        return f"{self.folder}/{BACKBONE_FILE}"

    @property
    def training_key(self) -> str:
        return f"{self.folder}/training.json"

    @cached_property
    def trainable(self) -> Backbone:
        return load_trainable(self.model_files, self.context.runtime.settings)

    @cached_property
    def tuned_backbone(self) -> Backbone:
        tensors = safetensors.torch.load(self.storage.read(self.backbone_key))
        return with_weights(self.trainable, tensors)

    def tuned_model(self) -> ClusterModel:
        tensors = safetensors.numpy.load(self.storage.read(self.model_key))
        return ClusterModel.from_tensors(tensors, self.model.temperature)

    @cached_property
    def tuned_embedding(self) -> EmbeddingFiles:
        return EmbeddingFiles.of(self.context, self.tuned_backbone)


def run_finetune(context: JobContext) -> None:
    # A constant: the number of threads changes how gradients are rounded.
    torch.set_num_threads(_THREADS)
    job = FinetuneJob(context)
    embed(job)
    run_stage(
        context,
        "mine",
        lambda: mine_features(context, job.embedding.features(), job.neighbors),
        done=job.neighbors.done,
    )
    run_stage(context, "finetune", lambda: tune(job), done=job.storage.exists(job.training_key))
    run_stage(context, "evaluate", lambda: evaluate(job), done=EvaluationFiles(job).done)
    register(job)


def tune(job: FinetuneJob) -> None:
    tuner = Finetuner(
        job.trainable,
        [job.model],
        partial(_pictures, job),
        job.neighbors.ids(),
        job.config,
        device=job.context.runtime.settings.device,
    )

    schedule = CurveSchedule()

    def on_report(report: FinetuneReport) -> None:
        if schedule.is_due(last=report.done):
            values = {"loss": report.loss, "best_head": report.best_head}
            job.context.add_curve(report.step, values)

    def save(report: FinetuneReport) -> None:
        backbone, model = tuner.finish()
        tensors = safetensors.torch.save(backbone_tensors(backbone))
        job.storage.write(job.backbone_key, tensors)
        job.storage.write(job.model_key, safetensors.numpy.save(model.tensors()))
        summary = {"steps": tuner.step, "loss": report.loss}
        save_json(job.storage, job.training_key, summary)

    run_resumable(job, "finetune", tuner, on_report=on_report, save=save)


def evaluate(job: FinetuneJob) -> None:
    """Evaluates with the features of the fine-tuned backbone."""
    embed_dataset(job.context, job.tuned_backbone, job.tuned_embedding, stage="evaluate")
    features, model = job.tuned_embedding.features(), job.tuned_model()
    EvaluationFiles(job).save(
        *evaluate_clustering(
            job.context,
            features,
            model,
            _trained_with(job),
            job.neighbors.ids(),
            clusters=job.clusters,
        )
    )


def register(job: FinetuneJob) -> None:
    evaluated = EvaluationFiles(job)
    metrics = evaluated.metrics() | {
        "training": load_json(job.storage, job.training_key),
        "neighbors": job.neighbors.summary(),
    }
    result = ClusteringResult(
        assignments=evaluated.assignments(),
        metrics=metrics,
        labels=job.clusters.names,
        merges=job.clusters.merges,
        embedding_folder=job.tuned_embedding.folder,
    )
    version = NewVersion(
        name=job.context.job.config["model_name"],
        manifest=_manifest(job, result),
        tensors={
            MODEL_FILE: job.storage.read(job.model_key),
            BACKBONE_FILE: job.storage.read(job.backbone_key),
            **novelty_file(job.tuned_embedding.features()),
        },
    )
    settings = job.context.runtime.settings
    if uses_converted(settings, job.tuned_backbone.precision):
        converted_backbones(settings).add(job.tuned_backbone)  # predictions then need no torch
    register_version(job.context, version, result)
    job.storage.delete(job.checkpoint_key)


def _manifest(job: FinetuneJob, result: ClusteringResult) -> dict[str, Any]:
    manifest = make_manifest(job.context, job.tuned_backbone, _trained_with(job), result)
    return manifest | {
        "backbone": job.manifest["backbone"],  # the architecture of the new weights
        "finetuned_from": {"name": job.model_name, "version": job.model_version},
        "finetune": job.context.job.config["finetune"],
    }


def _trained_with(job: FinetuneJob) -> TrainConfig:
    return TrainConfig.from_dict(job.manifest["config"])


def _pictures(job: FinetuneJob, rows: Sequence[int]) -> Iterator[Picture]:
    square = job.backbone.preprocessing.square
    hashes = job.embedding.hashes()
    return read_ahead(job.context, (hashes[row].tobytes() for row in rows), square)
