"""Assignments of a trained model, and how good they are as far as can be known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.datasets.rows import iterate_images
from temi.analysis.centers import center_distances
from temi.analysis.confidence import ConfidenceTally
from temi.config import TrainConfig
from temi.model import ClusterModel
from worker.context import JobContext

_CHUNK_ROWS = 16_384
_CHUNK_VALUES = 2**24  # probabilities held at once: 64 MB, also with 25,000 clusters


@dataclass(frozen=True, kw_only=True)
class Assignments:
    """Where the model puts each image of a dataset, in the dataset's order: arrays of (N,)."""

    cluster: npt.NDArray[np.int32]
    probability: npt.NDArray[np.float32]
    margin: npt.NDArray[np.float32]
    distance: npt.NDArray[np.float32]


def evaluate_clustering(
    context: JobContext,
    features: npt.NDArray[np.float32],
    model: ClusterModel,
    config: TrainConfig | None = None,
    neighbors: npt.NDArray[np.integer] | None = None,
    rows: npt.NDArray[np.integer] | None = None,
) -> tuple[dict[str, Any], Assignments]:
    """Without `config` there is no k-means to compare with. `neighbors` are those of `rows`, by
    default of all, numbered within them."""
    tally = _assign(context, features, model)
    labels = dataset_labels(context)
    with context.computing():
        return _measure(tally, features, model, config, neighbors, rows, labels)


def _measure(
    tally: ConfidenceTally,
    features: npt.NDArray[np.float32],
    model: ClusterModel,
    config: TrainConfig | None,
    neighbors: npt.NDArray[np.integer] | None,
    rows: npt.NDArray[np.integer] | None,
    labels: list[str | None],
) -> tuple[dict[str, Any], Assignments]:
    assigned = tally.assigned()
    metrics: dict[str, Any] = tally.result().as_dict()
    # As many numbers as clusters, and the clusters themselves have them.
    del metrics["cluster_sizes"]
    metrics |= {"temi": None, "kmeans": None, "neighbor_precision": None}
    if labels:
        # Brings scikit-learn in, two seconds that a collection without labels saves.
        from temi.analysis.kmeans import kmeans
        from temi.analysis.metrics import evaluate
        from temi.analysis.pairs import neighbor_precision

        metrics["temi"] = evaluate(labels, assigned).as_dict()
        if config is not None:
            baseline = kmeans(features, config.n_clusters, seed=config.seed)
            metrics["kmeans"] = evaluate(labels, baseline).as_dict()
        if neighbors is not None:
            paired = labels if rows is None else [labels[row] for row in rows]
            metrics["neighbor_precision"] = neighbor_precision(neighbors, paired).mean
    placing = Assignments(
        cluster=assigned.astype(np.int32),
        probability=tally.probability().astype(np.float32),
        margin=tally.margin().astype(np.float32),
        distance=center_distances(features, assigned, model.n_clusters),
    )
    return metrics, placing


def _assign(
    context: JobContext, features: npt.NDArray[np.float32], model: ClusterModel
) -> ConfidenceTally:
    meter = context.meter("evaluate", total=len(features))
    tally = ConfidenceTally(model.n_clusters)
    rows = max(1, min(_CHUNK_ROWS, _CHUNK_VALUES // model.n_clusters))
    for start in range(0, len(features), rows):
        chunk = features[start : start + rows]
        tally.add(model.predict_proba(chunk))  # (chunk, C)
        meter.to(start + len(chunk))
    return tally


def dataset_labels(context: JobContext) -> list[str | None]:
    """Empty if no image has a label: then there is nothing to compare with."""
    with context.runtime.db.read() as session:
        labels = [
            image.label
            for page in iterate_images(session, context.job.dataset_id)
            for image in page
        ]
    return labels if any(label is not None for label in labels) else []
