"""The last stage: model files, then every row of the result in one transaction."""

import hashlib
import importlib.metadata
import json
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings import (
    ClusterSummary,
    add_assignments,
    add_clusters,
    cluster_label,
    summarize,
)
from app.core.datasets import iterate_images
from app.core.ids import new_id
from app.core.jobs import Progress, finish
from app.core.registry import add_version
from app.core.tables import Clustering, Image
from temi.backbones import Backbone
from temi.config import TrainConfig
from worker.context import JobContext

_PACKAGES = ("torch", "timm", "numpy", "safetensors", "temi-service")


def register_clustering(
    context: JobContext,
    backbone: Backbone,
    config: TrainConfig,
    *,
    model_file: bytes,
    metrics: dict[str, Any],
    assigned: npt.NDArray[np.int32],
    probability: npt.NDArray[np.float32],
) -> None:
    context.meter("register", total=len(assigned))
    manifest = _manifest(context, backbone, config, metrics)
    folder = f"models/{context.job.id}"
    files = _write_files(context, folder, model_file, manifest)
    summaries = summarize(assigned, probability, config.n_clusters)
    with context.runtime.db.read() as session:
        ids = _image_ids(session, context)
        examples = _examples(session, context, summaries, probability)
    clustering_id = new_id("cl")
    with context.transaction() as session:
        version = add_version(
            session,
            tenant=context.job.tenant,
            name=context.job.config["model_name"],
            job_id=context.job.id,
            clustering_id=clustering_id,
            folder=folder,
            manifest=manifest,
            files=files,
        )
        model = {"name": context.job.config["model_name"], "version": version.version}
        _add_clustering(session, context, clustering_id, model, config, metrics, len(assigned))
        add_clusters(session, clustering_id, summaries, examples)
        add_assignments(session, clustering_id, zip(ids, assigned, probability, strict=True))
        result = {"clustering_id": clustering_id, "model": model, "metrics": metrics}
        finish(
            session,
            context.job.id,
            context.fence,
            status="succeeded",
            result=result,
            progress=Progress("register", len(assigned), len(assigned)),
        )


def _manifest(
    context: JobContext, backbone: Backbone, config: TrainConfig, metrics: dict[str, Any]
) -> dict[str, Any]:
    """All that is needed to use the model, and to know where it came from."""
    return {
        "format": 1,
        "backbone": backbone.name,
        "weights_sha256": backbone.weights_hash,
        "preprocessing": backbone.preprocessing.as_dict(),
        "feature_dim": backbone.dim,
        "n_clusters": config.n_clusters,
        "temperature": config.temperature,
        "clusters": [
            {"cluster_id": i, "label": cluster_label(i)} for i in range(config.n_clusters)
        ],
        "config": config.as_dict(),
        "seed": config.seed,
        "metrics": metrics,
        "dataset": {
            "id": context.job.dataset_id,
            "fingerprint": context.job.dataset_fingerprint,
        },
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def _write_files(
    context: JobContext, folder: str, model_file: bytes, manifest: dict[str, Any]
) -> dict[str, str]:
    files = {
        "model.safetensors": model_file,
        "manifest.json": json.dumps(manifest, indent=2, sort_keys=True).encode(),
    }
    for name, data in files.items():
        context.runtime.storage.write(f"{folder}/{name}", data)
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def _add_clustering(
    session: Session,
    context: JobContext,
    clustering_id: str,
    model: dict[str, Any],
    config: TrainConfig,
    metrics: dict[str, Any],
    image_count: int,
) -> None:
    session.add(
        Clustering(
            id=clustering_id,
            tenant=context.job.tenant,
            job_id=context.job.id,
            dataset_id=context.job.dataset_id,
            model_name=model["name"],
            model_version=model["version"],
            n_clusters=config.n_clusters,
            image_count=image_count,
            metrics=metrics,
        )
    )
    session.flush()


def _image_ids(session: Session, context: JobContext) -> list[str]:
    statement = select(Image.id).where(Image.dataset_id == context.job.dataset_id)
    return list(session.scalars(statement.order_by(Image.position)))


def _examples(
    session: Session,
    context: JobContext,
    summaries: list[ClusterSummary],
    probability: npt.NDArray[np.float32],
) -> dict[int, dict[str, Any]]:
    """What a reader wants to know of the surest images, by their row in the dataset."""
    wanted = {row for summary in summaries for row in summary.examples}
    found: dict[int, dict[str, Any]] = {}
    row = 0
    for page in iterate_images(session, context.job.dataset_id):
        for image in page:
            if row in wanted:
                found[row] = {
                    "image_id": image.id,
                    "name": image.name,
                    "probability": round(float(probability[row]), 6),
                }
            row += 1
    return found
