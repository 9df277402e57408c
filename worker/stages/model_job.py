"""The model version that a job starts from."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.core.clusterings.names import current_names
from app.core.models import get_model, get_version
from app.core.platform.tables import ModelVersion
from app.core.serving import ModelFiles, load_model
from temi.backbones.base import Backbone
from temi.model import ClusterModel
from worker.stages.base import EmbeddedJob


@dataclass(frozen=True)
class ModelJob(EmbeddedJob):
    """A job on the features of a registered model's backbone."""

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
    def labels(self) -> list[str]:
        """The names that people have given the clusters by now."""
        with self.context.runtime.db.read() as session:
            return current_names(session, self.version)

    @cached_property
    def loaded(self) -> tuple[Backbone, ClusterModel]:
        files = ModelFiles.of(self.version.folder, self.version.files, self.manifest)
        return load_model(files, self.context.runtime.settings)

    @cached_property
    def backbone(self) -> Backbone:
        return self.loaded[0]

    @property
    def model(self) -> ClusterModel:
        return self.loaded[1]
