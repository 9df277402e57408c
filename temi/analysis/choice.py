"""Choosing beta without labels, by the entropies of trained models.

With beta near 0.5, all clusters are equally probable for every image: both entropies are log C.
As beta grows, assignments become confident (the conditional entropy falls), and later clusters
become uneven (the occupancy entropy falls too). The best beta is the lowest one with confident
assignments.
"""

from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log
from typing import Any

from temi.errors import TemiError


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """The figures of one run of a sweep."""

    occupancy_entropy: float  # H(q(c)): high where all clusters are used
    conditional_entropy: float  # E_x H(q(c|x)): low where images are assigned with confidence
    mean_probability: float  # of the most probable cluster
    size_kl: float  # KL of the cluster sizes to equal sizes
    loss: float  # of the best head; depends on the swept setting, so do not compare runs by it
    accuracy: float | None = None  # None without labels


@dataclass(frozen=True, kw_only=True)
class BetaPoint(RunFigures):
    beta: float


@dataclass(frozen=True, kw_only=True)
class BetaCurve:
    n_clusters: int
    points: tuple[BetaPoint, ...]  # by rising beta

    def __post_init__(self) -> None:
        if self.n_clusters < 2:
            raise TemiError(f"a curve needs at least two clusters, not {self.n_clusters}")
        betas = [point.beta for point in self.points]
        if not betas or any(a >= b for a, b in pairwise(betas)):
            raise TemiError("a curve needs points in order of rising beta")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def doubt(conditional_entropy: float, n_clusters: int) -> float:
    """Return the entropy as a share of log C, the highest possible."""
    return conditional_entropy / log(n_clusters)


def choose_beta(curve: BetaCurve, *, tolerance: float = 0.1, ceiling: float = 0.5) -> float | None:
    """Return the lowest beta from which on the conditional entropy is low and stays low, or None.

    Entropies are compared as shares of log C, their value at beta = 0.5. "Low" means at most
    ``tolerance`` of the way from the lowest point of the curve up to log C. The lowest point is
    the lower reference because images that are hard to distinguish keep some entropy at every
    beta; log C is the upper one because it does not depend on where the grid starts. If even the
    lowest point is above ``ceiling`` (by default the entropy of a uniform choice between the
    square root of C clusters), no beta gives confident assignments, and the result is None.
    """
    shares = [doubt(point.conditional_entropy, curve.n_clusters) for point in curve.points]
    lowest = min(shares)
    if lowest > ceiling:
        return None
    limit = lowest + tolerance * (1 - lowest)
    chosen = None
    for point, share in zip(reversed(curve.points), reversed(shares), strict=True):
        if share > limit:
            break
        chosen = point.beta
    return chosen
