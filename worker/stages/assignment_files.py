"""What the evaluate stage leaves for the last one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import safetensors.numpy

from worker.stages.artifacts import load_json, save_json
from worker.stages.base import EmbeddedJob
from worker.stages.evaluation import Assignments


@dataclass(frozen=True)
class AssignmentFiles:
    job: EmbeddedJob

    @property
    def metrics_key(self) -> str:
        return f"{self.job.folder}/metrics.json"

    @property
    def assignments_key(self) -> str:
        return f"{self.job.folder}/placing.safetensors"

    @property
    def done(self) -> bool:
        return self.job.storage.exists(self.metrics_key)

    def save(self, metrics: Mapping[str, Any], placing: Assignments) -> None:
        self.job.storage.write(self.assignments_key, safetensors.numpy.save(vars(placing)))
        save_json(self.job.storage, self.metrics_key, metrics)

    def metrics(self) -> dict[str, Any]:
        return load_json(self.job.storage, self.metrics_key)

    def placing(self) -> Assignments:
        return Assignments(**safetensors.numpy.load(self.job.storage.read(self.assignments_key)))
