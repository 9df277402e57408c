import json

import numpy as np
import numpy.typing as npt
import pytest

from app.core.runtime import Runtime
from temi.analysis.confidence import measure_confidence
from temi.calibration import Calibration, fit_without_labels
from temi.config import TrainConfig
from temi.model import ClusterModel
from tests.images import jpeg_bytes, zip_of
from tests.worker.conftest import AddIngest, Claimed
from tests.worker.tiny import add_job
from worker.context import JobContext
from worker.jobs.ingest import run_ingest
from worker.stages import evaluation
from worker.stages.evaluation import evaluate_clustering

CONFIG = TrainConfig(n_clusters=4)
# Six images of cats, then six of dogs; each has one neighbor of its kind and one of the other.
NEIGHBORS = np.array([[(i + 1) % 6 + i // 6 * 6, (i + 6) % 12] for i in range(12)])


def some_features() -> npt.NDArray[np.float32]:
    noise = np.random.default_rng(1).normal(size=(12, 8))
    return (noise + 3 * np.repeat(np.eye(2, 8), 6, axis=0)).astype(np.float32)


def some_model() -> ClusterModel:
    rng = np.random.default_rng(0)
    shapes = {"w1": (8, 6), "b1": (6,), "w2": (6, 5), "b2": (5,), "w3": (5, 4)}
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    tensors |= {"mean": np.zeros(8, dtype=np.float32), "std": np.ones(8, dtype=np.float32)}
    return ClusterModel(tensors, 0.5)


def context_of(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed, labels_from: str
) -> JobContext:
    files = {f"{kind}/{n}.jpg": jpeg_bytes((n, 0, 0)) for kind in ("cat", "dog") for n in range(6)}
    job = add_ingest(runtime, zip_of(files), labels_from=labels_from)
    run_ingest(claimed(runtime, job.id))
    return claimed(runtime, add_job(runtime, job.dataset_id).id)


def test_metrics_without_labels(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_CHUNK_ROWS", 5)
    context = context_of(runtime, add_ingest, claimed, "none")
    features, model = some_features(), some_model()
    probs = model.predict_proba(features)
    expected = measure_confidence(probs)

    metrics, placing = evaluate_clustering(context, features, model, CONFIG, NEIGHBORS)

    ranked = np.sort(probs, axis=1)
    np.testing.assert_array_equal(placing.cluster, probs.argmax(axis=1))
    calibration = Calibration(**metrics.pop("calibration"))
    calibrated = np.sort(calibration.apply_to_all(probs), axis=1)
    assert calibration == fit_without_labels(ranked[:, -1], placing.cluster, NEIGHBORS)
    np.testing.assert_allclose(placing.probability, calibrated[:, -1], rtol=1e-5)
    np.testing.assert_allclose(placing.margin, calibrated[:, -1] - calibrated[:, -2], atol=1e-6)
    assert placing.distance.shape == placing.cluster.shape
    assert placing.cluster.dtype == np.int32
    assert placing.probability.dtype == np.float32
    sure = calibrated[:, -1]
    assert metrics.pop("mean_probability") == pytest.approx(sure.mean(), rel=1e-5)
    assert metrics.pop("median_probability") == pytest.approx(np.median(sure), rel=1e-5)
    assert metrics.pop("mean_raw_probability") == pytest.approx(ranked[:, -1].mean(), rel=1e-5)
    for name in (
        "occupancy_entropy",
        "conditional_entropy",
        "mutual_information",
        "max_entropy",
        "size_kl",
        "empty_clusters",
    ):
        assert metrics.pop(name) == pytest.approx(getattr(expected, name), rel=1e-5)
    names = ("temi", "kmeans", "neighbor_precision", "calibration_error")
    assert metrics == dict.fromkeys(names)


def test_labels_add_scores(runtime: Runtime, add_ingest: AddIngest, claimed: Claimed) -> None:
    context = context_of(runtime, add_ingest, claimed, "folder")

    metrics, _ = evaluate_clustering(context, some_features(), some_model(), CONFIG, NEIGHBORS)

    assert metrics["temi"]["n_labeled"] == 12
    assert metrics["kmeans"]["n_clusters"] == 4
    assert metrics["neighbor_precision"] == 0.5
    assert 0 < metrics["calibration_error"] < 1
    assert json.loads(json.dumps(metrics)) == metrics


def test_neighbors_are_not_required(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    context = context_of(runtime, add_ingest, claimed, "folder")

    metrics, _ = evaluate_clustering(context, some_features(), some_model(), CONFIG)

    assert metrics["neighbor_precision"] is None
    assert metrics["calibration"] == {"slope": 1.0, "intercept": 0.0}
