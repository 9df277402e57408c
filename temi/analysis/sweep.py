"""Trainings with several values of beta, and their figures."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np
import numpy.typing as npt

from temi.analysis.choice import BetaCurve, BetaPoint, RunFigures
from temi.analysis.confidence import ConfidenceTally
from temi.analysis.metrics import evaluate
from temi.config import TrainConfig
from temi.model import ClusterModel
from temi.standardize import chunks
from temi.training.trainer import Trainer, TrainReport

DEFAULT_BETAS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)

# Steps between two calls of `progress`.
_STEPS = 20
# Probabilities computed at a time.
_CHUNK_VALUES = 2**24


def sweep_beta(
    features: npt.NDArray[np.floating],
    neighbors: npt.NDArray[np.integer],
    config: TrainConfig,
    *,
    betas: Sequence[float] = DEFAULT_BETAS,
    labels: Sequence[object | None] | None = None,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> BetaCurve:
    """Train once for every beta with otherwise equal settings, including the seed.

    ``progress`` is called with the number of finished steps and the total; a run that stops early
    counts as complete.
    """
    # Validates all settings before the first training, which takes minutes.
    # One head each: how confident a consensus is says little about beta.
    select = config.select or "lowest_loss"
    configs = {beta: replace(config, beta=beta, select=select) for beta in sorted(set(betas))}
    points = []
    for index, (beta, one) in enumerate(configs.items()):
        figures = train_once(
            features,
            neighbors,
            one,
            labels=labels,
            device=device,
            progress=_part_of(progress, index, len(configs)),
        )
        points.append(BetaPoint(beta=beta, **asdict(figures)))
    return BetaCurve(n_clusters=config.n_clusters, points=tuple(points))


def train_once(
    features: npt.NDArray[np.floating],
    neighbors: npt.NDArray[np.integer],
    config: TrainConfig,
    *,
    measured: npt.NDArray[np.floating] | None = None,
    labels: Sequence[object | None] | None = None,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> RunFigures:
    """Train once and return the figures over ``measured``, by default the training features."""
    model, report = train_model(features, neighbors, config, device=device, progress=progress)
    return _measure(model, report, features if measured is None else measured, labels)


def train_model(
    features: npt.NDArray[np.floating],
    neighbors: npt.NDArray[np.integer],
    config: TrainConfig,
    *,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ClusterModel, TrainReport]:
    """Train once; return the model and the last report."""
    trainer = Trainer(features, neighbors, config, device=device)
    while not trainer.done:
        trainer.run(_STEPS)
        if progress is not None:
            progress(trainer.total_steps if trainer.done else trainer.step, trainer.total_steps)
    return trainer.finish(), trainer.report()


def _part_of(
    progress: Callable[[int, int], None] | None, index: int, runs: int
) -> Callable[[int, int], None] | None:
    """Convert the progress of one run to that of several runs of the same length."""
    if progress is None:
        return None
    return lambda done, total: progress(index * total + done, runs * total)


def _measure(
    model: ClusterModel,
    report: TrainReport,
    features: npt.NDArray[np.floating],
    labels: Sequence[object | None] | None,
) -> RunFigures:
    tally = ConfidenceTally(model.n_clusters)
    for rows in chunks(len(features), max(1, _CHUNK_VALUES // model.n_clusters)):
        tally.add(model.predict_proba(features[rows]))
    confidence = tally.result()
    return RunFigures(
        occupancy_entropy=confidence.occupancy_entropy,
        conditional_entropy=confidence.conditional_entropy,
        mean_probability=confidence.mean_probability,
        size_kl=confidence.size_kl,
        loss=report.loss,
        accuracy=None if labels is None else evaluate(labels, tally.assigned()).accuracy,
    )
