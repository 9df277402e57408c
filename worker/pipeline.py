"""A clustering job, stage by stage: load artefacts, call one function of `temi`, save artefacts.

Every artefact is named after what it depends on, so a stage whose artefact exists is skipped:
after a crash, and in any other job on the same images.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
import safetensors.torch
import torch

from app.core.storage import LocalStorage
from temi.backbones import Backbone, load_backbone
from temi.config import TrainConfig
from temi.model import ClusterModel
from temi.neighbors import mine_neighbors
from temi.train import Trainer
from worker.artefacts import content_key, load_array, load_json, save_array, save_json
from worker.context import JobContext
from worker.embedding import embed_dataset
from worker.evaluation import Placing, evaluate_clustering
from worker.registration import register_clustering

# To be raised when the same images and model give other features than before.
_FEATURES = 2
_FIRST_STEPS = 10
_SECONDS_A_REPORT = 0.5


@dataclass(frozen=True)
class ClusterJob:
    """The names of a job's artefacts, and the ways to load them."""

    context: JobContext

    @cached_property
    def config(self) -> TrainConfig:
        return TrainConfig.from_dict(self.context.job.config["train"])

    @property
    def storage(self) -> LocalStorage:
        return self.context.runtime.storage

    @cached_property
    def backbone(self) -> Backbone:
        settings = self.context.runtime.settings
        return load_backbone(
            self.context.job.config["backbone"],
            weights_dir=settings.weights_dir,
            device=settings.device,
        )

    @cached_property
    def embedding(self) -> str:
        """Images and model decide the features, so jobs on the same two share them."""
        backbone = self.backbone
        return "embeddings/" + content_key(
            _FEATURES,
            self.context.job.dataset_fingerprint,
            backbone.name,
            backbone.weights_hash,
            backbone.preprocessing.as_dict(),
        )

    @property
    def features_key(self) -> str:
        return f"{self.embedding}/features.npy"

    @property
    def mining_key(self) -> str:
        """How the neighbors were found; written after them."""
        return f"{self.embedding}/neighbors-{self.config.n_neighbors}.json"

    def neighbors_key(self, method: str) -> str:
        """Jobs that share an embedding may differ in method, for want of memory for instance."""
        return f"{self.embedding}/neighbors-{self.config.n_neighbors}-{method}.npy"

    @property
    def folder(self) -> str:
        return f"jobs/{self.context.job.id}"

    @property
    def checkpoint_key(self) -> str:
        return f"{self.folder}/checkpoint.safetensors"

    @property
    def model_key(self) -> str:
        return f"{self.folder}/model.safetensors"

    @property
    def training_key(self) -> str:
        return f"{self.folder}/training.json"

    @property
    def metrics_key(self) -> str:
        return f"{self.folder}/metrics.json"

    @property
    def placing_key(self) -> str:
        return f"{self.folder}/placing.safetensors"

    def features(self) -> npt.NDArray[np.float32]:
        return load_array(self.storage, self.features_key)

    def mining(self) -> dict[str, Any]:
        return load_json(self.storage, self.mining_key)

    def neighbors(self) -> npt.NDArray[np.int64]:
        return load_array(self.storage, self.neighbors_key(self.mining()["method"]))

    def model(self) -> ClusterModel:
        tensors = safetensors.numpy.load(self.storage.read(self.model_key))
        return ClusterModel.from_tensors(tensors, self.config.temperature)


def run_cluster(context: JobContext) -> None:
    torch.set_num_threads(context.runtime.settings.threads)
    job = ClusterJob(context)
    _stage(job, "embed", job.features_key, embed)
    _stage(job, "mine", job.mining_key, mine)
    _stage(job, "train", job.training_key, train)
    _stage(job, "evaluate", job.metrics_key, evaluate)
    register(job)


def _stage(job: ClusterJob, name: str, artefact: str, run: Callable[[ClusterJob], None]) -> None:
    """Run a stage unless the artefact that it writes last is already there."""
    started = time.monotonic()
    skipped = job.storage.exists(artefact)
    if not skipped:
        run(job)
    job.context.record_timing(name, time.monotonic() - started, skipped=skipped)


def embed(job: ClusterJob) -> None:
    embed_dataset(job.context, job.backbone, job.embedding, job.features_key)


def mine(job: ClusterJob) -> None:
    features = job.features()
    meter = job.context.meter("mine", total=len(features))
    assert job.config.n_neighbors is not None  # resolved when the job was created
    neighbors = mine_neighbors(
        features, job.config.n_neighbors, progress=lambda done, _total: meter.to(done)
    )
    save_array(job.storage, job.neighbors_key(neighbors.method), neighbors.ids)
    save_json(job.storage, job.mining_key, neighbors.summary())
    meter.checkpoint()


def train(job: ClusterJob) -> None:
    settings = job.context.runtime.settings
    trainer = Trainer(job.features(), job.neighbors(), job.config, device=settings.device)
    if job.storage.exists(job.checkpoint_key):
        trainer.load_state(safetensors.torch.load(job.storage.read(job.checkpoint_key)))
    meter = job.context.meter("train", total=trainer.total_steps, completed=trainer.step)
    steps, saved_at = _FIRST_STEPS, time.monotonic()
    report = trainer.report()
    while not trainer.done:
        started = time.monotonic()
        report = trainer.run(steps)
        meter.to(trainer.step)
        now = time.monotonic()
        steps = max(1, round(steps * min(4.0, _SECONDS_A_REPORT / max(now - started, 1e-3))))
        if now - saved_at > settings.checkpoint_seconds:
            job.storage.write(job.checkpoint_key, safetensors.torch.save(trainer.state()))
            meter.checkpoint()
            saved_at = now
    job.storage.write(job.model_key, safetensors.numpy.save(trainer.finish().tensors()))
    summary = {"steps": trainer.step, "loss": report.loss, "settled": report.settled}
    save_json(job.storage, job.training_key, summary)
    meter.checkpoint()


def evaluate(job: ClusterJob) -> None:
    metrics, placing = evaluate_clustering(
        job.context, job.features(), job.model(), job.config, job.neighbors()
    )
    job.storage.write(job.placing_key, safetensors.numpy.save(vars(placing)))
    save_json(job.storage, job.metrics_key, metrics)


def register(job: ClusterJob) -> None:
    training: dict[str, Any] = load_json(job.storage, job.training_key)
    register_clustering(
        job.context,
        job.backbone,
        job.config,
        model_file=job.storage.read(job.model_key),
        metrics=load_json(job.storage, job.metrics_key)
        | {"training": training, "neighbors": job.mining()},
        placing=Placing(**safetensors.numpy.load(job.storage.read(job.placing_key))),
        embedding_folder=job.embedding,
    )
    job.storage.delete(job.checkpoint_key)
