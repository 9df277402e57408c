"""How a worker that does not hold a job embeds images of it."""

import importlib
from typing import Any

import torch

from app.core.errors import Conflict
from temi.backbones import Backbone
from worker.artefacts import load_array
from worker.context import JobContext
from worker.embedding import Embedder, EmbeddingFiles

# Others embed with the backbone that their configuration names.
_JOBS = {
    "finetune": ("worker.finetune", "FinetuneJob"),
    "predict": ("worker.versions", "ModelJob"),
}


def embedder(context: JobContext, stage: str, plan: dict[str, Any]) -> Embedder:
    torch.set_num_threads(plan["threads"])
    backbone = _backbone(context, stage)
    if EmbeddingFiles.of(context, backbone).folder != plan["folder"]:
        raise Conflict("This worker has other weights than the one that holds the job.")
    hashes = load_array(context.runtime.storage, plan["hashes"])
    return Embedder(context, backbone, hashes, plan["threads"])


def _backbone(context: JobContext, stage: str) -> Backbone:
    module, name = _JOBS.get(context.job.kind, ("worker.stages", "EmbeddedJob"))
    job = getattr(importlib.import_module(module), name)(context)
    # A fine-tuned backbone is evaluated on features of its own.
    backbone: Backbone = job.tuned_backbone if stage == "evaluate" else job.backbone
    return backbone
