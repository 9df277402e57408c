"""Agreement of clusters with labels."""

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)

from temi.errors import TemiError

ONE_TO_ONE = "one cluster per class"
MAJORITY = "one cluster per class; clusters left over count for their majority class"


@dataclass(frozen=True, kw_only=True)
class ClusteringMetrics:
    """Scores over the labeled images; None where no image has a label."""

    accuracy: float | None  # Hungarian matching
    nmi: float | None
    ami: float | None
    ari: float | None
    n_labeled: int
    n_unlabeled: int
    n_classes: int
    n_clusters: int  # clusters that hold at least one labeled image
    matching: str  # how clusters were matched to classes for the accuracy

    def as_dict(self) -> dict[str, float | int | str | None]:
        return asdict(self)


def evaluate(
    labels: Sequence[object | None], predicted: npt.NDArray[np.integer]
) -> ClusteringMetrics:
    """Compare clusters with labels of any hashable type; None (or NaN) means no label."""
    if len(labels) != len(predicted):
        raise TemiError(f"{len(labels)} labels for {len(predicted)} predictions")
    codes, _ = number_labels(labels)
    known = codes >= 0
    classes = codes[known]
    clusters = np.unique(np.asarray(predicted)[known], return_inverse=True)[1].astype(np.int64)
    n_classes = int(classes.max()) + 1 if len(classes) else 0
    n_clusters = int(clusters.max()) + 1 if len(clusters) else 0
    scored = len(classes) > 0
    return ClusteringMetrics(
        accuracy=_accuracy(classes, clusters) if scored else None,
        nmi=float(normalized_mutual_info_score(classes, clusters)) if scored else None,
        ami=float(adjusted_mutual_info_score(classes, clusters)) if scored else None,
        ari=float(adjusted_rand_score(classes, clusters)) if scored else None,
        n_labeled=int(known.sum()),
        n_unlabeled=int((~known).sum()),
        n_classes=n_classes,
        n_clusters=n_clusters,
        matching=MAJORITY if n_clusters > n_classes else ONE_TO_ONE,
    )


def right_labels(
    labels: Sequence[object | None], predicted: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which images have a label (N,), and of these, which are in the cluster that is matched
    to it, as for the accuracy."""
    codes, _ = number_labels(labels)
    known = codes >= 0
    if not known.any():
        return known, np.zeros(0, dtype=np.bool_)
    classes = codes[known]
    clusters = np.unique(np.asarray(predicted)[known], return_inverse=True)[1].astype(np.int64)
    return known, classes == _match(classes, clusters)[clusters]


def number_labels(
    labels: Sequence[object | None],
) -> tuple[npt.NDArray[np.int64], tuple[Hashable, ...]]:
    """Return the class of each label (-1: no label) and the classes in order of appearance.

    Labels need not be sortable.
    """
    seen: dict[Hashable, int] = {}
    codes = [-1 if _missing(label) else seen.setdefault(_key(label), len(seen)) for label in labels]
    return np.array(codes, dtype=np.int64), tuple(seen)


def _accuracy(classes: npt.NDArray[np.int64], clusters: npt.NDArray[np.int64]) -> float:
    return float((classes == _match(classes, clusters)[clusters]).sum()) / len(classes)


def _match(
    classes: npt.NDArray[np.int64], clusters: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the class of each cluster: (C,); clusters left over have their majority class."""
    table = np.zeros((int(clusters.max()) + 1, int(classes.max()) + 1), dtype=np.int64)
    np.add.at(table, (clusters, classes), 1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    matched: npt.NDArray[np.int64] = table.argmax(axis=1).astype(np.int64)
    matched[rows] = columns
    return matched


def _missing(label: object | None) -> bool:
    return label is None or (isinstance(label, float) and np.isnan(label))


def _key(label: object) -> Hashable:
    if not isinstance(label, Hashable):
        raise TemiError(f"a label must be hashable, but {type(label).__name__} is not")
    return label
