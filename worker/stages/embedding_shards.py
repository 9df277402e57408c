"""How a worker that does not hold a job embeds images of it."""

import pkgutil
from typing import Any

from app.core.platform.errors import Conflict
from temi.backbones.base import Backbone
from worker.context import JobContext
from worker.stages.artifacts import load_array
from worker.stages.embedding import Embedder, EmbeddingFiles
from worker.supervision.heartbeat import takes

# Others embed with the backbone that their configuration names.
_JOBS = {
    "finetune": "worker.jobs.finetune:FinetuneJob",
    "predict": "worker.stages.model_job:ModelJob",
}


def embedder(context: JobContext, stage: str, plan: dict[str, Any]) -> Embedder:
    if context.job.config["precision"] not in ("float32", *takes(context.runtime.settings)):
        raise Conflict("The job declares bfloat16, for which this worker has no instructions.")
    backbone = _backbone(context, stage)
    if EmbeddingFiles.of(context, backbone).folder != plan["folder"]:
        raise Conflict("This worker has other weights than the one that holds the job.")
    own = (backbone.device.type, backbone.backend.name)
    wanted = (plan["device"], plan["backend"])
    if own != wanted:
        raise Conflict(
            f"This worker computes features on {own[0]} by {own[1]}, the one that holds the job on "
            f"{wanted[0]} by {wanted[1]}: they would differ in the last bits."
        )
    hashes = load_array(context.runtime.storage, plan["hashes"])
    return Embedder(context, backbone, hashes)


def _backbone(context: JobContext, stage: str) -> Backbone:
    job = pkgutil.resolve_name(_JOBS.get(context.job.kind, "worker.stages.base:EmbeddedJob"))(
        context
    )
    # A fine-tuned backbone is evaluated on features of its own.
    backbone: Backbone = job.tuned_backbone if stage == "evaluate" else job.backbone
    return backbone
