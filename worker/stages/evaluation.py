"""The evaluate stage: assignments of a trained model and their metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from app.core.clusterings.names import ModelClusters
from app.core.datasets.rows import iterate_images
from app.core.models.calibrations import as_dict
from temi.analysis.centers import center_distances
from temi.analysis.confidence import ConfidenceTally
from temi.analysis.reliability import measure_reliability
from temi.calibration import IDENTITY, Calibration, fit_without_labels
from temi.config import TrainConfig
from temi.model import ClusterModel
from worker.context import JobContext
from worker.stages.artifacts import load_json, save_json
from worker.stages.base import EmbeddedJob

_CHUNK_ROWS = 16_384
_CHUNK_VALUES = 2**24  # probabilities held at once: 64 MB, also with 25,000 clusters


@dataclass(frozen=True, kw_only=True)
class Assignments:
    """The cluster of each image of a dataset, in the dataset's order: arrays of (N,)."""

    cluster: npt.NDArray[np.int32]
    probability: npt.NDArray[np.float32]
    margin: npt.NDArray[np.float32]
    distance: npt.NDArray[np.float32]

    def take(self, rows: npt.NDArray[np.integer]) -> "Assignments":
        return Assignments(**{name: values[rows] for name, values in vars(self).items()})


@dataclass(frozen=True)
class EvaluationFiles:
    """The files of the evaluate stage, which the register stage reads. `suffix` is for a job that
    trains several models."""

    job: EmbeddedJob
    suffix: str = ""

    @property
    def metrics_key(self) -> str:
        return f"{self.job.folder}/metrics{self.suffix}.json"

    @property
    def assignments_key(self) -> str:
        return f"{self.job.folder}/assignments{self.suffix}.safetensors"

    @property
    def done(self) -> bool:
        return self.job.storage.exists(self.metrics_key)

    def save(self, metrics: Mapping[str, Any], assignments: Assignments) -> None:
        self.job.storage.write(self.assignments_key, safetensors.numpy.save(vars(assignments)))
        save_json(self.job.storage, self.metrics_key, metrics)

    def metrics(self) -> dict[str, Any]:
        return load_json(self.job.storage, self.metrics_key)

    def assignments(self) -> Assignments:
        return Assignments(**safetensors.numpy.load(self.job.storage.read(self.assignments_key)))


def evaluate_clustering(
    context: JobContext,
    features: npt.NDArray[np.float32],
    model: ClusterModel,
    config: TrainConfig | None = None,
    neighbors: npt.NDArray[np.integer] | None = None,
    rows: npt.NDArray[np.integer] | None = None,
    clusters: ModelClusters | None = None,
    calibration: Calibration = IDENTITY,
) -> tuple[dict[str, Any], Assignments]:
    """Returns metrics and assignments. `config` adds k-means for comparison. `neighbors` are those
    of `rows` (by default of all rows), numbered within them; with them the probabilities are
    fitted to them, else calibrated by `calibration`. `clusters` are merged first."""
    progress = context.start_progress("evaluate", total=len(features))
    tally = assign(features, model, clusters, progress.advance_to)
    labels = dataset_labels(context)
    with context.computing():
        return measure(tally, features, labels, config, neighbors, rows, calibration)


def measure(
    tally: ConfidenceTally,
    features: npt.NDArray[np.float32],
    labels: list[str | None],
    config: TrainConfig | None = None,
    neighbors: npt.NDArray[np.integer] | None = None,
    rows: npt.NDArray[np.integer] | None = None,
    calibration: Calibration = IDENTITY,
) -> tuple[dict[str, Any], Assignments]:
    """Returns metrics and assignments of the tally; for the arguments see
    `evaluate_clustering`."""
    assigned, probability = tally.assigned(), tally.probability()
    if neighbors is not None:
        trained = slice(None) if rows is None else rows
        calibration = fit_without_labels(probability[trained], assigned[trained], neighbors)
    calibrated = calibration.apply(probability)
    metrics: dict[str, Any] = tally.result().as_dict()
    # One number per cluster, and the rows of the clusters have them.
    del metrics["cluster_sizes"]
    metrics |= {
        "mean_probability": float(calibrated.mean()),
        "median_probability": float(np.median(calibrated)),
        "mean_raw_probability": float(probability.mean()),
    }
    metrics |= {"temi": None, "kmeans": None, "neighbor_precision": None}
    metrics |= {"calibration": as_dict(calibration), "calibration_error": None}
    if labels:
        # Imports scikit-learn, which takes two seconds: only if there are labels.
        from temi.analysis.kmeans import kmeans
        from temi.analysis.metrics import evaluate, right_labels
        from temi.analysis.pairs import neighbor_precision

        metrics["temi"] = evaluate(labels, assigned).as_dict()
        known, right = right_labels(labels, assigned)
        metrics["calibration_error"] = measure_reliability(calibrated[known], right).error
        if config is not None:
            baseline = kmeans(features, config.n_clusters, seed=config.seed)
            metrics["kmeans"] = evaluate(labels, baseline).as_dict()
        if neighbors is not None:
            paired = labels if rows is None else [labels[row] for row in rows]
            metrics["neighbor_precision"] = neighbor_precision(neighbors, paired).mean
    assignments = Assignments(
        cluster=assigned.astype(np.int32),
        probability=calibrated.astype(np.float32),
        margin=_calibrated_margin(tally, calibration).astype(np.float32),
        distance=center_distances(features, assigned, tally.n_clusters),
    )
    return metrics, assignments


def _calibrated_margin(tally: ConfidenceTally, calibration: Calibration) -> npt.NDArray[np.float64]:
    probability = tally.probability()
    second = probability - tally.margin()
    return calibration.apply(probability) - calibration.factors(probability) * second


def assign(
    features: npt.NDArray[np.float32],
    model: ClusterModel,
    clusters: ModelClusters | None = None,
    advance_to: Callable[[int], None] | None = None,
) -> ConfidenceTally:
    """Assigns all rows; `advance_to` is called with the number of finished ones."""
    tally = ConfidenceTally(model.n_clusters)
    rows = max(1, min(_CHUNK_ROWS, _CHUNK_VALUES // model.n_clusters))
    for start in range(0, len(features), rows):
        chunk = features[start : start + rows]
        probabilities = model.predict_proba(chunk)  # (chunk, C)
        tally.add(clusters.merge(probabilities) if clusters else probabilities)
        if advance_to is not None:
            advance_to(start + len(chunk))
    return tally


def dataset_labels(context: JobContext) -> list[str | None]:
    """Returns the label of every image, or an empty list if none has one."""
    with context.runtime.db.read() as session:
        labels = [
            image.label
            for page in iterate_images(session, context.job.dataset_id)
            for image in page
        ]
    return labels if any(label is not None for label in labels) else []
