"""How many images of a finite collection are wrong, from a random sample that grows.

A confidence sequence: the interval holds the true number at every size of the sample at once, so
people may look at it after each answer and stop when it suffices. It is the prior-posterior-ratio
martingale for sampling without replacement (Waudby-Smith and Ramdas, 2020): a number of wrong
images stays in the interval as long as the answers are less than 1 / error times as likely under
the prior as under it. The prior decides how soon the interval is narrow, not whether it holds.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# A beta distribution of the share of wrong images: about two percent, and rather fewer. It has the
# shortest proofs of 95 % if one to two percent are wrong.
_PRIOR_WRONG, _PRIOR_RIGHT = 0.5, 30.0


class Bounds(NamedTuple):
    """Of the number of wrong images; arrays of the shape of the arguments."""

    low: Floats
    high: Floats


def wrong_in_collection(
    size: npt.ArrayLike, drawn: npt.ArrayLike, wrong: npt.ArrayLike, error: npt.ArrayLike
) -> Bounds:
    """Bounds for the wrong images among `size`, of which `drawn` were drawn at random and `wrong`
    of these found wrong. They fail ever, at any size of the sample, with probability `error`."""
    count, n, k, alpha = np.broadcast_arrays(
        *(np.asarray(values, np.float64) for values in (size, drawn, wrong, error))
    )
    least = _log_mixture(n, k) + np.log(alpha)
    # A plan may ask for fractions of an answer.
    lowest = np.ceil(k)
    highest = np.maximum(np.floor(count - (n - k)), lowest)
    mode = np.clip(np.floor(k * (count + 1) / np.maximum(n, 1)), lowest, highest)

    def likely(number: Floats) -> Bools:
        found: Bools = _log_likelihood(count, n, k, number) > least
        return found

    return Bounds(_search(likely, mode, lowest), _search(likely, mode, highest))


def _search(likely: Callable[[Floats], Bools], inside: Floats, end: Floats) -> Floats:
    """The number that is farthest from `inside` in the direction of `end` and still likely."""
    inside, end = inside.astype(np.float64), end.astype(np.float64)
    inside = np.where(likely(end), end, inside)
    while np.any(np.abs(end - inside) > 1):
        middle = np.trunc((inside + end) / 2)
        good = likely(middle)
        inside, end = np.where(good, middle, inside), np.where(good, end, middle)
        end = np.where(np.abs(end - inside) <= 1, inside, end)
    return inside


def _log_likelihood(count: Floats, n: Floats, k: Floats, number: Floats) -> Floats:
    """Of `k` wrong ones in a sample of `n`, if `number` of `count` are wrong."""
    rest = np.maximum(count - number, n - k)
    found = _log_choose(np.maximum(number, k), k) + _log_choose(rest, n - k)
    return np.asarray(found - _log_choose(count, n), np.float64)


def _log_mixture(n: Floats, k: Floats) -> Floats:
    """The same, if the number is drawn from the prior."""
    from scipy.special import betaln  # loads a hundred modules, to review only

    a, b = _PRIOR_WRONG, _PRIOR_RIGHT
    return np.asarray(_log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b), np.float64)


def _log_choose(n: Floats, k: Floats) -> Floats:
    from scipy.special import gammaln  # as above

    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), np.float64)
