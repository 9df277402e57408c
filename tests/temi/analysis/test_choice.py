import json
from collections.abc import Sequence

import numpy as np
import pytest

from temi.analysis.choice import (
    BetaCurve,
    BetaPoint,
    choose_beta,
)
from temi.errors import TemiError


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


def test_curves() -> None:
    curve = curve_of([0.9, 0.1])

    assert json.loads(json.dumps(curve.as_dict()))["points"][1]["beta"] == 0.6
    with pytest.raises(TemiError, match="rising"):
        BetaCurve(n_clusters=100, points=curve.points[::-1])
    with pytest.raises(TemiError, match="two clusters"):
        BetaCurve(n_clusters=1, points=curve.points)
