"""The last stage: model files, then every row of the result in one transaction."""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings import (
    Assigned,
    add_assignments,
    add_clusters,
    cluster_label,
    refresh_clusters,
)
from app.core.ids import new_id
from app.core.jobs import Progress, finish
from app.core.registry import add_version
from app.core.tables import Clustering, Image
from temi.backbones import Backbone
from temi.config import TrainConfig
from worker.context import JobContext
from worker.evaluation import Placing

_PACKAGES = ("torch", "timm", "numpy", "safetensors", "temi-service")


def register_clustering(
    context: JobContext,
    backbone: Backbone,
    config: TrainConfig,
    *,
    model_file: bytes,
    metrics: dict[str, Any],
    placing: Placing,
    embedding_folder: str,
) -> None:
    count = len(placing.cluster)
    context.meter("register", total=count)
    manifest = _manifest(context, backbone, config, metrics)
    folder = f"models/{context.job.id}"
    files = _write_files(context, folder, model_file, manifest)
    with context.runtime.db.read() as session:
        ids = _image_ids(session, context)
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
        clustering = Clustering(
            id=clustering_id,
            tenant=context.job.tenant,
            job_id=context.job.id,
            dataset_id=context.job.dataset_id,
            dataset_fingerprint=context.job.dataset_fingerprint,
            embedding_folder=embedding_folder,
            model_name=model["name"],
            model_version=model["version"],
            n_clusters=config.n_clusters,
            image_count=count,
            metrics=metrics,
        )
        add_clustering(session, clustering, placed(ids, placing))
        result = {"clustering_id": clustering_id, "model": model, "metrics": metrics}
        finish(
            session,
            context.job.id,
            context.fence,
            status="succeeded",
            result=result,
            progress=Progress("register", count, count),
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


def add_clustering(session: Session, clustering: Clustering, rows: Iterable[Assigned]) -> None:
    """A clustering with all its clusters and assignments."""
    session.add(clustering)
    session.flush()
    add_clusters(session, clustering.id, range(clustering.n_clusters))
    add_assignments(session, clustering.id, rows)
    refresh_clusters(session, clustering.id)


def placed(ids: Sequence[str], placing: Placing) -> Iterator[Assigned]:
    """Rows for the database, in the order of the dataset."""
    columns = (placing.cluster, placing.probability, placing.margin, placing.distance)
    for image_id, *values in zip(ids, *columns, strict=True):
        cluster_id, probability, margin, distance = values
        yield Assigned(image_id, int(cluster_id), *map(float, (probability, margin, distance)))


def _image_ids(session: Session, context: JobContext) -> list[str]:
    statement = select(Image.id).where(Image.dataset_id == context.job.dataset_id)
    return list(session.scalars(statement.order_by(Image.position)))
