"""Embeds shards of a job that another worker holds."""

import pkgutil
from typing import Any

from app.core.platform.errors import Conflict
from temi.backbones.extractor import FeatureExtractor
from worker.context import JobContext
from worker.stages.artifacts import load_array
from worker.stages.embedding import EmbeddingFiles, EmbedShard
from worker.supervision.heartbeat import available_resources

# Other kinds embed with the backbone that their configuration names.
_JOBS = {
    "finetune": "worker.jobs.finetune:FinetuneJob",
    "predict": "worker.stages.base:ModelJob",
}


def prepare_embed_shard(context: JobContext, stage: str, plan: dict[str, Any]) -> EmbedShard:
    if context.job.config["precision"] not in (
        "float32",
        *available_resources(context.runtime.settings),
    ):
        raise Conflict(
            "The job needs bfloat16, which the hardware of this worker does not support."
        )
    backbone = _backbone(context, stage)
    if EmbeddingFiles.of(context, backbone).folder != plan["folder"]:
        raise Conflict("This worker has other backbone weights than the worker that holds the job.")
    own = (backbone.device_type, backbone.backend.name)
    wanted = (plan["device"], plan["backend"])
    if own != wanted:
        raise Conflict(
            f"This worker computes features on {own[0]} with {own[1]}, the worker that holds the "
            f"job on {wanted[0]} with {wanted[1]}: the features would differ in the last bits."
        )
    hashes = load_array(context.runtime.storage, plan["hashes"])
    return EmbedShard(context, backbone, hashes)


def _backbone(context: JobContext, stage: str) -> FeatureExtractor:
    job = pkgutil.resolve_name(_JOBS.get(context.job.kind, "worker.stages.base:EmbeddedJob"))(
        context
    )
    # A fine-tuned model is evaluated on the features of its own backbone.
    backbone: FeatureExtractor = job.tuned_backbone if stage == "evaluate" else job.backbone
    return backbone
