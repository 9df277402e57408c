"""Assignments of a trained model, and how good they are as far as can be known."""

from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.datasets import iterate_images
from temi.config import TrainConfig
from temi.kmeans import kmeans
from temi.metrics import evaluate
from temi.model import ClusterModel
from worker.context import JobContext

_CHUNK = 16_384


def evaluate_clustering(
    context: JobContext,
    features: npt.NDArray[np.float32],
    model: ClusterModel,
    config: TrainConfig,
) -> tuple[dict[str, Any], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Metrics, the cluster of each image, and its probability."""
    meter = context.meter("evaluate", total=len(features))
    assigned = np.empty(len(features), dtype=np.int32)
    probability = np.empty(len(features), dtype=np.float32)
    occupancy = np.zeros(config.n_clusters)
    for start in range(0, len(features), _CHUNK):
        chunk = model.predict_proba(features[start : start + _CHUNK])  # (chunk, C)
        stop = start + len(chunk)
        assigned[start:stop] = chunk.argmax(axis=1)
        probability[start:stop] = chunk.max(axis=1)
        occupancy += chunk.sum(axis=0)
        meter.to(stop)
    metrics: dict[str, Any] = {
        "mean_probability": float(probability.mean()),
        "median_probability": float(np.median(probability)),
        "occupancy_entropy": _entropy(occupancy / len(features)),
        "max_entropy": float(np.log(config.n_clusters)),
        "empty_clusters": int(config.n_clusters - len(np.unique(assigned))),
        "temi": None,
        "kmeans": None,
    }
    if labels := _labels(context):
        metrics["temi"] = evaluate(labels, assigned).as_dict()
        baseline = kmeans(features, config.n_clusters, seed=config.seed)
        metrics["kmeans"] = evaluate(labels, baseline).as_dict()
    return metrics, assigned, probability


def _labels(context: JobContext) -> list[str | None]:
    """Empty if no image has a label: then there is nothing to compare with."""
    with context.runtime.db.read() as session:
        labels = [
            image.label
            for page in iterate_images(session, context.job.dataset_id)
            for image in page
        ]
    return labels if any(label is not None for label in labels) else []


def _entropy(distribution: npt.NDArray[np.float64]) -> float:
    positive = distribution[distribution > 0]
    return float(-(positive * np.log(positive)).sum())
