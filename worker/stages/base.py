"""What jobs on an embedded dataset share: a folder, a backbone or model, timed stages."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.core.clusterings.names import ModelClusters, current_clusters
from app.core.models.calibrations import current_calibration, stored_calibration
from app.core.models.extractors import open_extractor
from app.core.models.files import LoadedVersion, ModelFiles, load_model
from app.core.models.versions import get_model, get_version
from app.core.platform.tables import Clustering, ModelVersion
from app.core.storage import Storage
from app.core.storage.keys import job_folder
from temi.backbones.extractor import FeatureExtractor
from temi.calibration import Calibration
from temi.model import ClusterModel
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
        """The folder of the job's own artifacts."""
        return job_folder(self.context.job.id)

    @property
    def checkpoint_key(self) -> str:
        return f"{self.folder}/checkpoint.safetensors"

    @cached_property
    def backbone(self) -> FeatureExtractor:
        config = self.context.job.config
        return open_extractor(
            config["backbone"], config["precision"], self.context.runtime.settings
        )

    @cached_property
    def embedding(self) -> EmbeddingFiles:
        return EmbeddingFiles.of(self.context, self.backbone)


@dataclass(frozen=True)
class ModelJob(EmbeddedJob):
    """A job that starts with a registered model and the features of its backbone."""

    @property
    def model_name(self) -> str:
        return str(self.context.job.config["model"]["name"])

    @property
    def model_version(self) -> int:
        return int(self.context.job.config["model"]["version"])

    @cached_property
    def version(self) -> ModelVersion:
        with self.context.runtime.db.read() as session:
            model = get_model(session, self.context.job.tenant, self.model_name)
            return get_version(session, model, self.model_version)

    @property
    def manifest(self) -> dict[str, Any]:
        return self.version.manifest

    @cached_property
    def clusters(self) -> ModelClusters:
        """The clusters of the model as users have named and merged them."""
        extended = self.context.job.config.get("clustering_id")
        with self.context.runtime.db.read() as session:
            return current_clusters(session, self.version, extended)

    @cached_property
    def calibration(self) -> Calibration:
        """Of the clustering that the job extends, so that its probabilities stay comparable; else
        the current one."""
        with self.context.runtime.db.read() as session:
            extended = session.get(Clustering, self.context.job.config.get("clustering_id") or "")
            if extended is not None:
                return stored_calibration(extended.metrics)
            return current_calibration(session, self.version)

    @property
    def model_files(self) -> ModelFiles:
        return ModelFiles.of(self.version.folder, self.version.files, self.manifest)

    @cached_property
    def loaded(self) -> LoadedVersion:
        return load_model(self.model_files, self.context.runtime.settings)

    @cached_property
    def backbone(self) -> FeatureExtractor:
        return self.loaded.backbone

    @property
    def model(self) -> ClusterModel:
        return self.loaded.head


def run_stage(context: JobContext, name: str, run: Callable[[], None], *, done: bool) -> None:
    """Runs a stage unless its artifacts exist, and records its duration."""
    started = time.monotonic()
    if not done:
        run()
    context.record_timing(name, time.monotonic() - started, skipped=done)


def embed(job: EmbeddedJob) -> None:
    started, done = time.monotonic(), job.embedding.done
    embed_dataset(job.context, job.backbone, job.embedding)
    job.context.record_timing("embed", time.monotonic() - started, skipped=done)
