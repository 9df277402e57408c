"""What jobs on an embedded dataset share: a folder of their own, a backbone, timed stages."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from app.core.storage import Storage
from app.core.storage.keys import job_folder
from temi.backbones.base import Backbone
from temi.backbones.load import load_backbone
from worker.context import JobContext
from worker.stages.embedding import EmbeddingFiles, embed_dataset


@dataclass(frozen=True)
class EmbeddedJob:
    """A job that starts with the features of its dataset."""

    context: JobContext

    @property
    def storage(self) -> Storage:
        return self.context.runtime.storage

    @property
    def folder(self) -> str:
        """Where the job's own artifacts are."""
        return job_folder(self.context.job.id)

    @property
    def checkpoint_key(self) -> str:
        return f"{self.folder}/checkpoint.safetensors"

    @cached_property
    def backbone(self) -> Backbone:
        settings = self.context.runtime.settings
        return load_backbone(
            self.context.job.config["backbone"],
            weights_dir=settings.weights_dir,
            device=settings.device,
            precision=self.context.job.config["precision"],
        )

    @cached_property
    def embedding(self) -> EmbeddingFiles:
        return EmbeddingFiles.of(self.context, self.backbone)


def run_stage(context: JobContext, name: str, run: Callable[[], None], *, done: bool) -> None:
    """Run a stage unless its artifacts are already there."""
    started = time.monotonic()
    if not done:
        run()
    context.record_timing(name, time.monotonic() - started, skipped=done)


def embed(job: EmbeddedJob) -> None:
    started, done = time.monotonic(), job.embedding.done
    embed_dataset(job.context, job.backbone, job.embedding)
    job.context.record_timing("embed", time.monotonic() - started, skipped=done)
