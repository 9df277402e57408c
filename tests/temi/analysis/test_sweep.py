from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from temi.analysis.choice import (
    choose_beta,
)
from temi.analysis.confidence import measure_confidence
from temi.analysis.sweep import DEFAULT_BETAS, sweep_beta, train_once
from temi.config import TrainConfig
from temi.errors import InvalidConfig, TemiError
from temi.training.trainer import Trainer

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]

CONFIG = TrainConfig(
    n_clusters=4,
    n_heads=2,
    hidden_dim=32,
    bottleneck_dim=16,
    batch_size=64,
    steps=150,
    early_stop=False,
    seed=3,
)


def nearest(features: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    distances = ((features[:, None] - features[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1)[:, :k]


def test_low_beta_gives_uncertain_and_high_beta_confident_assignments(mixture: Mixture) -> None:
    """The direction of the curve, on overlapping groups."""
    features, groups = mixture(200, n_groups=4, spread=1.2)

    curve = sweep_beta(
        features,
        nearest(features, 10),
        CONFIG,
        betas=(0.9, 0.505, 0.7),
        labels=list(groups),
        device="cpu",
    )

    unsure, sure, also_sure = curve.points
    assert [point.beta for point in curve.points] == [0.505, 0.7, 0.9]
    assert unsure.conditional_entropy > 0.8 * np.log(4)
    assert sure.conditional_entropy < 0.2 * np.log(4)
    assert also_sure.conditional_entropy < 0.2 * np.log(4)
    assert sure.occupancy_entropy > 0.95 * np.log(4)
    assert sure.mean_probability > unsure.mean_probability
    assert choose_beta(curve) == 0.7
    assert sure.accuracy is not None
    assert sure.accuracy > 0.8


def test_a_point_equals_a_single_run(mixture: Mixture) -> None:
    features, _ = mixture(90, n_groups=4)
    neighbors = nearest(features, 5)
    config = replace(CONFIG, steps=30)
    one = replace(config, beta=0.7, select="lowest_loss")
    trainer = Trainer(features, neighbors, one, device="cpu")
    trainer.run(30)
    expected = measure_confidence(trainer.finish().predict_proba(features))

    curve = sweep_beta(features, neighbors, config, betas=[0.7], device="cpu")

    (point,) = curve.points
    assert point.conditional_entropy == pytest.approx(expected.conditional_entropy)
    assert point.occupancy_entropy == pytest.approx(expected.occupancy_entropy)
    assert point.mean_probability == pytest.approx(expected.mean_probability)
    assert point.loss == trainer.report().loss
    assert point.accuracy is None


def test_progress_rises_to_the_end(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    seen: list[tuple[int, int]] = []

    sweep_beta(
        features,
        nearest(features, 5),
        replace(CONFIG, steps=50),
        betas=[0.6, 1.0],
        device="cpu",
        progress=lambda done, total: seen.append((done, total)),
    )

    assert [done for done, _ in seen] == [20, 40, 50, 70, 90, 100]
    assert {total for _, total in seen} == {100}


def test_an_invalid_beta_is_refused_before_training(mixture: Mixture) -> None:
    features, _ = mixture(20, n_groups=4)

    def progress(done: int, total: int) -> None:
        raise AssertionError("training began")

    with pytest.raises(InvalidConfig, match="beta"):
        sweep_beta(features, nearest(features, 5), CONFIG, betas=[0.6, 1.2], progress=progress)
    with pytest.raises(TemiError, match="rising"):
        sweep_beta(features, nearest(features, 5), CONFIG, betas=[])


def test_default_grid() -> None:
    assert len(DEFAULT_BETAS) == 10
    assert all(0.5 < beta <= 1.0 for beta in DEFAULT_BETAS)
    assert 0.6 in DEFAULT_BETAS


def test_a_run_can_be_measured_on_other_features(mixture: Mixture) -> None:
    features, groups = mixture(80, n_groups=4)
    part = features[:60]
    figures = train_once(
        part,
        nearest(part, 5),
        replace(CONFIG, steps=30),
        measured=features,
        labels=list(groups),
        device="cpu",
    )
    assert figures.accuracy is not None
    assert figures.size_kl >= 0
