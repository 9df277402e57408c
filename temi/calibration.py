"""Calibration: probabilities that say how often a label is right.

The probability p of the chosen cluster becomes sigmoid(slope * logit(p) + intercept). The slope is
positive, so an image that was more certain stays so, and no label changes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError
from temi.standardize import chunks

Numbers = npt.NDArray[np.float64]

MIN_SLOPE, MAX_SLOPE = 0.02, 20.0
MAX_INTERCEPT = 20.0
_EDGE = 1e-6  # probabilities this near to 0 and 1 are alike
_ITERATIONS = 50
_MAX_ROWS = 20_000  # of the training, evenly over the set
_DECIMALS = 9  # the last digits of a fit depend on the processor


@dataclass(frozen=True, kw_only=True)
class Calibration:
    slope: float = 1.0
    intercept: float = 0.0

    def __post_init__(self) -> None:
        # Written so that NaN fails the check too.
        if not MIN_SLOPE <= self.slope <= MAX_SLOPE:
            raise TemiError(f"slope must be from {MIN_SLOPE} to {MAX_SLOPE}, not {self.slope}")
        if not abs(self.intercept) <= MAX_INTERCEPT:
            raise TemiError(
                f"intercept must be from -{MAX_INTERCEPT} to {MAX_INTERCEPT}, not {self.intercept}"
            )

    def apply(self, probability: npt.ArrayLike) -> Numbers:
        """Return the calibrated probabilities of the chosen clusters, in the same shape."""
        return _sigmoid(self.slope * _logit(probability) + self.intercept)

    def invert(self, calibrated: npt.ArrayLike) -> Numbers:
        """Return the probabilities that `apply` maps to these."""
        return _sigmoid((_logit(calibrated) - self.intercept) / self.slope)

    def factors(self, probability: npt.ArrayLike) -> Numbers:
        """Return what the probabilities of an image's other clusters are multiplied by.

        If the chosen cluster becomes less certain, all shrink alike, and what is missing to one is
        the probability that no cluster is right: doubt about one cluster is no evidence for
        another. So the order of the clusters never changes.
        """
        before = np.clip(np.asarray(probability, dtype=np.float64), _EDGE, 1 - _EDGE)
        after = self.apply(before)
        return np.minimum((1 - after) / (1 - before), after / before)

    def apply_to_all(self, probabilities: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """Return calibrated probabilities of all clusters: (..., C)."""
        chosen = probabilities.argmax(axis=-1)[..., None]
        top = np.take_along_axis(probabilities, chosen, axis=-1)  # (..., 1)
        scaled = np.asarray(probabilities * self.factors(top), dtype=np.float32)
        np.put_along_axis(scaled, chosen, self.apply(top).astype(np.float32), axis=-1)
        return scaled


IDENTITY = Calibration()


def fit_calibration(
    probability: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    prior: Calibration = IDENTITY,
    prior_weights: tuple[float, float] = (1.0, 1.0),
) -> Calibration:
    """Fit the map to images (n,) whose label is right (1) or wrong (0), or right with this share.

    Logistic regression on the log-odds. `prior_weights` pull slope and intercept to those of
    `prior` like normal distributions of these precisions: with few images they decide, with many
    the images do.
    """
    odds, right = _logit(probability), np.asarray(right, dtype=np.float64)
    if odds.ndim != 1 or odds.shape != right.shape or len(odds) == 0:
        raise TemiError("a calibration needs probabilities and outcomes of the same images: (n,)")
    start = np.array([prior.slope, prior.intercept])
    rows = np.stack([odds, np.ones_like(odds)])  # (2, n)
    weights = np.array(prior_weights)
    found = _newton(rows, right, start, weights)
    if not MIN_SLOPE <= found[0] <= MAX_SLOPE:  # the order of the images must stay
        slope = float(np.clip(found[0], MIN_SLOPE, MAX_SLOPE))
        shifted = _newton(rows[1:], right, start[1:], weights[1:], offset=slope * odds)
        found = np.array([slope, shifted[0]])
    return Calibration(
        slope=round(float(found[0]), _DECIMALS),
        intercept=round(float(np.clip(found[1], -MAX_INTERCEPT, MAX_INTERCEPT)), _DECIMALS),
    )


def fit_without_labels(
    probability: npt.NDArray[np.floating],
    assigned: npt.NDArray[np.integer],
    neighbors: npt.NDArray[np.integer],
) -> Calibration:
    """Fit the map to training images (n,) by their neighbors (n, k), rows of the same images.

    Where the clusters are right, similar images share them: a label counts as right with the share
    of the neighbors that have it, too.
    """
    rows = np.linspace(0, len(assigned) - 1, min(_MAX_ROWS, len(assigned))).astype(np.int64)
    shares = np.empty(len(rows))
    for part in chunks(len(rows)):
        near = assigned[neighbors[rows[part]]]  # (chunk, k)
        shares[part] = (near == assigned[rows[part], None]).mean(axis=1)
    return fit_calibration(probability[rows], shares)


def _newton(
    rows: Numbers, right: Numbers, start: Numbers, weights: Numbers, offset: Numbers | float = 0.0
) -> Numbers:
    """Minimize the logistic loss of the linear function of `rows` (p, n), which is convex."""
    found = start.copy()
    loss = _loss(rows, right, start, weights, offset, found)
    for _ in range(_ITERATIONS):
        expected = _sigmoid(found @ rows + offset)
        gradient = rows @ (expected - right) + weights * (found - start)
        curvature = (rows * (expected * (1 - expected))) @ rows.T + np.diag(weights)
        step = np.linalg.solve(curvature, gradient)
        while (new := _loss(rows, right, start, weights, offset, found - step)) > loss:
            step = step / 2
            if np.abs(step).max() < 1e-12:
                return found
        found, loss = found - step, new
        if np.abs(step).max() < 1e-12:
            break
    return found


def _loss(
    rows: Numbers,
    right: Numbers,
    start: Numbers,
    weights: Numbers,
    offset: Numbers | float,
    at: Numbers,
) -> float:
    odds = at @ rows + offset
    far = at - start
    return float((np.logaddexp(0, odds) - right * odds).sum() + (weights * far) @ far / 2)


def _logit(probability: npt.ArrayLike) -> Numbers:
    clipped = np.clip(np.asarray(probability, dtype=np.float64), _EDGE, 1 - _EDGE)
    odds: Numbers = np.log(clipped) - np.log1p(-clipped)
    return odds


def _sigmoid(odds: npt.ArrayLike) -> Numbers:
    values: Numbers = 0.5 + 0.5 * np.tanh(0.5 * np.asarray(odds, dtype=np.float64))
    return values
