"""The register stage: writes the model files, then all rows of the result in one transaction."""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.core.clusterings.carried_answers import carry_answers
from app.core.clusterings.current import set_first
from app.core.clusterings.operations import Merge, apply_operation
from app.core.clusterings.rows import (
    Assigned,
    add_assignments,
    add_clusters,
    cluster_label,
    refresh_clusters,
)
from app.core.jobs.lifecycle import Progress, finish
from app.core.models.files import NOVELTY_FILE
from app.core.models.versions import add_version
from app.core.platform.activity import reporting
from app.core.platform.ids import new_id
from app.core.platform.tables import Cluster, Clustering, Image
from app.core.storage.keys import model_folder
from temi.backbones.extractor import FeatureExtractor
from temi.config import TrainConfig
from temi.novelty import fit_novelty
from worker.context import JobContext
from worker.stages.evaluation import Assignments
from worker.stages.learned import Learned

_PACKAGES = ("torch", "timm", "numpy", "safetensors", "temi-service")


@dataclass(frozen=True, kw_only=True)
class ClusteringResult:
    """The result of a job that clusters a dataset."""

    assignments: Assignments
    metrics: dict[str, Any]
    labels: Sequence[str]  # names of the clusters, by number
    merges: Sequence[Sequence[int]] = ()  # clusters that are one, each into its first
    embedding_folder: str
    learned: Learned | None = None  # what people said about an earlier clustering


@dataclass(frozen=True, kw_only=True)
class NewVersion:
    """A trained model to register."""

    name: str
    manifest: dict[str, Any]
    tensors: dict[str, bytes]  # file name -> safetensors
    number: int | None = None  # of a job that registers several


def novelty_file(features: npt.NDArray[np.float32]) -> dict[str, bytes]:
    """The novelty detector of the images of a training, as a file of the version."""
    return {NOVELTY_FILE: safetensors.numpy.save(fit_novelty(features).tensors())}


def default_labels(n_clusters: int) -> list[str]:
    return [cluster_label(number) for number in range(n_clusters)]


def make_manifest(
    context: JobContext, backbone: FeatureExtractor, config: TrainConfig, result: ClusteringResult
) -> dict[str, Any]:
    """Returns the manifest: all that is needed to use the model, and its origin."""
    return {
        "format": 1,
        "backbone": backbone.name,
        "weights_sha256": backbone.weights_hash,
        "preprocessing": backbone.preprocessing.as_dict(),
        "precision": backbone.precision,
        "feature_dim": backbone.dim,
        "n_clusters": config.n_clusters,
        "temperature": config.temperature,
        "calibration": result.metrics["calibration"],
        "clusters": [{"cluster_id": i, "label": label} for i, label in enumerate(result.labels)],
        "config": config.as_dict(),
        "seed": config.seed,
        "metrics": result.metrics,
        "dataset": {
            "id": context.job.dataset_id,
            "fingerprint": context.job.dataset_fingerprint,
        },
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def register_version(context: JobContext, version: NewVersion, result: ClusteringResult) -> None:
    """Registers a new model version and its clustering, and ends the job."""
    context.start_progress("register", total=len(result.assignments.cluster))
    files = write_files(context, version)
    ids = image_ids(context)
    with context.transaction() as session:
        clustering = add_trained(context, session, version, files, result, ids)
        _finish(context, session, clustering)


def register_prediction(
    context: JobContext, name: str, version: int, result: ClusteringResult
) -> None:
    """Adds a clustering by a registered model, and ends the job."""
    context.start_progress("register", total=len(result.assignments.cluster))
    ids = image_ids(context)
    with context.transaction() as session:
        clustering = _add_result(context, session, new_id("cl"), (name, version), result, ids)
        _finish(context, session, clustering)


def add_trained(
    context: JobContext,
    session: Session,
    version: NewVersion,
    files: dict[str, str],
    result: ClusteringResult,
    ids: Sequence[str],
) -> Clustering:
    """Adds a version, whose files are written, and its clustering."""
    clustering_id = new_id("cl")
    row = add_version(
        session,
        tenant=context.job.tenant,
        name=version.name,
        job_id=context.job.id,
        clustering_id=clustering_id,
        folder=model_folder(context.job.id, version.number),
        manifest=version.manifest,
        files=files,
    )
    model = (version.name, row.version)
    return _add_result(context, session, clustering_id, model, result, ids)


def _add_result(
    context: JobContext,
    session: Session,
    clustering_id: str,
    model: tuple[str, int],
    result: ClusteringResult,
    ids: Sequence[str],
) -> Clustering:
    clustering = Clustering(
        id=clustering_id,
        tenant=context.job.tenant,
        job_id=context.job.id,
        dataset_id=context.job.dataset_id,
        dataset_fingerprint=context.job.dataset_fingerprint,
        embedding_folder=result.embedding_folder,
        model_name=model[0],
        model_version=model[1],
        n_clusters=len(result.labels),
        image_count=len(ids),
        metrics=result.metrics,
    )
    add_clustering(session, clustering, to_rows(ids, result.assignments))
    name_clusters(session, clustering_id, result.labels)
    for merged in result.merges:
        operation = Merge(cluster_ids=merged, into=merged[0])
        apply_operation(session, context.job.tenant, clustering_id, operation)
    if result.learned is not None:
        source_id = context.job.config["learn_from"]["clustering_id"]
        carry_answers(session, source_id, clustering_id, result.learned.answers(ids))
    return clustering


def reference_of(clustering: Clustering) -> dict[str, Any]:
    """What the result of a job says of its clustering."""
    model = {"name": clustering.model_name, "version": clustering.model_version}
    return {"clustering_id": clustering.id, "model": model}


def _finish(context: JobContext, session: Session, clustering: Clustering) -> None:
    set_first(session, clustering)
    summary = reference_of(clustering) | {"metrics": clustering.metrics}
    finish_registration(context, session, summary, clustering.image_count)


def finish_registration(
    context: JobContext, session: Session, summary: dict[str, Any], count: int
) -> None:
    """Ends the job with this result and the name of its backbone, which `auto` may have chosen."""
    finish(
        session,
        context.job.id,
        context.fence,
        status="succeeded",
        result={**summary, "backbone": context.job.config["backbone"]},
        progress=Progress("register", count, count),
    )


def write_files(context: JobContext, version: NewVersion) -> dict[str, str]:
    """Writes the model's files; returns their SHA-256."""
    folder = model_folder(context.job.id, version.number)
    manifest = json.dumps(version.manifest, indent=2, sort_keys=True).encode()
    files = {**version.tensors, "manifest.json": manifest}
    for name, data in files.items():
        context.runtime.storage.write(f"{folder}/{name}", data)
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def add_clustering(session: Session, clustering: Clustering, rows: Iterable[Assigned]) -> None:
    """Adds a clustering with all its clusters and assignments."""
    session.add(clustering)
    session.flush()
    add_clusters(session, clustering.id, range(clustering.n_clusters))
    add_assignments(session, clustering.id, rows)
    refresh_clusters(session, clustering.id)


def name_clusters(session: Session, clustering_id: str, labels: Sequence[str]) -> None:
    """Stores the names that differ from the default names."""
    named = [
        {"clustering_id": clustering_id, "cluster_id": number, "label": label, "named": True}
        for number, label in enumerate(labels)
        if label != cluster_label(number)
    ]
    if named:
        session.execute(update(Cluster), named)


def to_rows(ids: Sequence[str], assignments: Assignments) -> Iterator[Assigned]:
    """Yields the rows of the assignments, in the order of the dataset."""
    columns = (
        assignments.cluster,
        assignments.probability,
        assignments.margin,
        assignments.distance,
    )
    for image_id, *values in zip(ids, *columns, strict=True):
        cluster_id, probability, margin, distance = values
        yield Assigned(image_id, int(cluster_id), *map(float, (probability, margin, distance)))


def image_ids(context: JobContext) -> list[str]:
    """Returns the ids of all images, in the order of the dataset."""
    statement = select(Image.id).where(Image.dataset_id == context.job.dataset_id)
    with context.runtime.db.read() as session:
        return list(reporting(session.scalars(statement.order_by(Image.position))))
