import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from temi.analysis.confidence import measure_confidence
from temi.analysis.sweep import (
    DEFAULT_BETAS,
    BetaCurve,
    BetaPoint,
    SizePoint,
    choose_beta,
    choose_n_clusters,
    sweep_beta,
    train_once,
)
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


def curve_of(shares: Sequence[float], *, n_clusters: int = 100, first: float = 0.55) -> BetaCurve:
    """A curve with these conditional entropies, as shares of log C, in steps of 0.05 of beta."""
    return BetaCurve(
        n_clusters=n_clusters,
        points=tuple(
            BetaPoint(
                beta=round(first + 0.05 * index, 2),
                occupancy_entropy=float(np.log(n_clusters)),
                conditional_entropy=float(share * np.log(n_clusters)),
                mean_probability=0.5,
                size_kl=0.0,
                loss=0.0,
            )
            for index, share in enumerate(shares)
        ),
    )


@pytest.mark.parametrize("n_clusters", [2, 10, 25_000])
@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0.95, 0.5, 0.12, 0.05, 0.05, 0.04], 0.65),  # falls, and stays
        ([0.9, 0.08, 0.07, 0.06, 0.05, 0.04], 0.6),  # a slow fall within what is low
        ([0.9, 0.06, 0.4, 0.05, 0.09, 0.05], 0.7),  # low for a moment: not yet
        ([0.9, 0.30, 0.33, 0.28, 0.31, 0.3], 0.6),  # hard images keep all betas from zero
        ([0.05, 0.05, 0.05, 0.05], 0.55),  # flat and low: the first of the grid
        ([0.0, 0.0, 0.0], 0.55),
        ([0.95, 0.95, 0.95], None),  # flat and high
        ([1.0, 0.95, 0.9, 0.8, 0.7, 0.6], None),  # falls, but never to anything confident
        ([0.9, 0.1, 0.1, 0.1, 0.6], None),  # low, but does not stay
        ([0.9, 0.7, 0.5, 0.3, 0.04], 0.75),  # only the last one is
        ([0.04, 0.3, 0.5, 0.7, 0.9], None),  # the wrong way round
        ([0.1], 0.55),
        ([0.9], None),
    ],
)
def test_choice_on_curves_by_hand(
    shares: list[float], expected: float | None, n_clusters: int
) -> None:
    assert choose_beta(curve_of(shares, n_clusters=n_clusters)) == expected


def test_choice_does_not_depend_on_the_start_of_the_grid() -> None:
    shares = [0.99, 0.9, 0.3, 0.12, 0.1, 0.06]

    whole = choose_beta(curve_of(shares))
    rest = choose_beta(curve_of(shares[3:], first=0.70))

    assert whole == rest == 0.7


def test_lower_and_higher_tolerance() -> None:
    curve = curve_of([0.9, 0.3, 0.08, 0.02, 0.02])

    assert choose_beta(curve, tolerance=0.01) == 0.7
    assert choose_beta(curve, tolerance=0.5) == 0.6
    assert choose_beta(curve, ceiling=0.01) is None


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
    assert unsure.conditional_entropy > 0.9 * np.log(4)
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
    trainer = Trainer(features, neighbors, replace(config, beta=0.7), device="cpu")
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


def test_curves() -> None:
    curve = curve_of([0.9, 0.1])

    assert json.loads(json.dumps(curve.as_dict()))["points"][1]["beta"] == 0.6
    with pytest.raises(TemiError, match="rising"):
        BetaCurve(n_clusters=100, points=curve.points[::-1])
    with pytest.raises(TemiError, match="two clusters"):
        BetaCurve(n_clusters=1, points=curve.points)


def test_default_grid() -> None:
    assert len(DEFAULT_BETAS) == 10
    assert all(0.5 < beta <= 1.0 for beta in DEFAULT_BETAS)
    assert 0.6 in DEFAULT_BETAS


def size_point(n_clusters: int, share: float) -> SizePoint:
    return SizePoint(
        n_clusters=n_clusters,
        occupancy_entropy=float(np.log(n_clusters)),
        conditional_entropy=float(share * np.log(n_clusters)),
        mean_probability=0.5,
        size_kl=0.0,
        loss=0.0,
    )


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({2: 0.0, 3: 0.0, 4: 0.17, 5: 0.07, 6: 0.0, 8: 0.15}, 6),  # six groups
        ({2: 0.5, 3: 0.4}, None),
        ({4: 0.0}, 4),
        ({}, None),
    ],
)
def test_the_largest_number_of_clusters_with_confident_assignments(
    shares: dict[int, float], expected: int | None
) -> None:
    points = [size_point(n_clusters, share) for n_clusters, share in shares.items()]
    assert choose_n_clusters(points) == expected


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
