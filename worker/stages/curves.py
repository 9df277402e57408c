"""Points of a training run's curves, often enough to watch and not too many to keep."""

import time
from typing import Protocol

import numpy as np
import numpy.typing as npt

from temi.analysis.confidence import measure_confidence
from temi.model import ClusterModel
from temi.training.trainer import TrainReport
from worker.context import JobContext

_SAMPLE_ROWS = 2_048
_SAMPLE_VALUES = 2**24  # probabilities: 64 MB, also with 25,000 clusters
_USE_SECONDS = 2.0  # between two looks at how the clusters are used
_POINTS = 500  # within each tenfold of the time so far; a run of days has a few thousand


class HasModel(Protocol):
    """Whatever trains heads."""

    def model(self, head: int) -> ClusterModel: ...


class Pace:
    """When the next point of a curve is due: at every report at first, then less and less often."""

    def __init__(self) -> None:
        self._started = self._shown_at = time.monotonic()

    def due(self, *, last: bool) -> bool:
        now = time.monotonic()
        if not last and now - self._shown_at < (now - self._started) / _POINTS:
            return False
        self._shown_at = now
        return True


class TrainingCurve:
    """Draws no random numbers and changes nothing of the trainer: a watched run is the same run."""

    def __init__(
        self, context: JobContext, features: npt.NDArray[np.float32], n_clusters: int
    ) -> None:
        self._context = context
        count = min(len(features), _SAMPLE_ROWS, max(1, _SAMPLE_VALUES // n_clusters))
        # Evenly over the set: collections are often uploaded group by group.
        rows = np.linspace(0, len(features) - 1, count).astype(np.int64)
        self._sample = np.asarray(features[rows])
        self._pace = Pace()
        self._used_at = 0.0

    def show(self, trainer: HasModel, report: TrainReport) -> None:
        if not self._pace.due(last=report.done):
            return
        values: dict[str, object] = {
            "loss": _rounded(report.loss),
            "losses": [_rounded(loss) for loss in report.losses],
            "best_head": report.best_head,
            "learning_rate": _rounded(report.learning_rate),
        }
        if report.done or time.monotonic() - self._used_at >= _USE_SECONDS:
            values |= self._cluster_use(trainer, report.best_head)
            self._used_at = time.monotonic()
        self._context.curve(report.step, values)

    def _cluster_use(self, trainer: HasModel, head: int) -> dict[str, object]:
        confidence = measure_confidence(trainer.model(head).predict_proba(self._sample))
        return {
            "occupancy_entropy": _rounded(confidence.occupancy_entropy),
            "conditional_entropy": _rounded(confidence.conditional_entropy),
            "used_clusters": len(confidence.cluster_sizes) - confidence.empty_clusters,
        }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
