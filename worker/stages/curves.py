"""The curves of a training run: enough points to watch it, and few enough to store."""

import time
from typing import Protocol

import numpy as np
import numpy.typing as npt

from temi.analysis.confidence import measure_confidence
from temi.training.trainer import TrainReport
from worker.context import JobContext

_SAMPLE_ROWS = 2_048
_SAMPLE_VALUES = 2**24  # probabilities: 64 MB, also with 25,000 clusters
_OCCUPANCY_SECONDS = 2.0  # between two measurements of the clusters' occupancy
_POINTS = 500  # per tenfold of the time; a run of days has a few thousand


class HeadTrainer(Protocol):
    """A trainer that can return the probabilities of each head."""

    def head_probabilities(
        self, head: int, ids: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.float32]: ...


class CurveSchedule:
    """Decides which reports become points: every one at first, then fewer and fewer."""

    def __init__(self) -> None:
        self._started = self._added_at = time.monotonic()

    def is_due(self, *, last: bool) -> bool:
        now = time.monotonic()
        if not last and now - self._added_at < (now - self._started) / _POINTS:
            return False
        self._added_at = now
        return True


class TrainingCurve:
    """Draws no random numbers and does not change the trainer, so it does not change the run."""

    def __init__(self, context: JobContext, n_images: int, n_clusters: int) -> None:
        self._context = context
        count = min(n_images, _SAMPLE_ROWS, max(1, _SAMPLE_VALUES // n_clusters))
        # Evenly over the dataset: collections are often uploaded group by group.
        self._sample = np.linspace(0, n_images - 1, count).astype(np.int64)
        self._schedule = CurveSchedule()
        self._measured_at = 0.0

    def add(self, trainer: HeadTrainer, report: TrainReport) -> None:
        if not self._schedule.is_due(last=report.done):
            return
        values: dict[str, object] = {
            "loss": _rounded(report.loss),
            "losses": [_rounded(loss) for loss in report.losses],
            "best_head": report.best_head,
            "learning_rate": _rounded(report.learning_rate),
        }
        if report.done or time.monotonic() - self._measured_at >= _OCCUPANCY_SECONDS:
            values |= self._occupancy(trainer, report.best_head)
            self._measured_at = time.monotonic()
        self._context.add_curve(report.step, values)

    def _occupancy(self, trainer: HeadTrainer, head: int) -> dict[str, object]:
        confidence = measure_confidence(trainer.head_probabilities(head, self._sample))
        return {
            "occupancy_entropy": _rounded(confidence.occupancy_entropy),
            "conditional_entropy": _rounded(confidence.conditional_entropy),
            "used_clusters": len(confidence.cluster_sizes) - confidence.empty_clusters,
        }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
