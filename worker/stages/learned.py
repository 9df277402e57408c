"""What people said about an earlier clustering, which the result of a training keeps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.core.clusterings.carried_answers import CarriedAnswer
from app.core.platform.tables import EXCLUDED
from temi.model import ClusterModel
from temi.standardize import chunks
from temi.training.constraints import OUTSIDE, UNKNOWN, Constraints

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """By row of the dataset, with the numbers of the new clusters."""

    labels: Integers  # (N,): what people said: a cluster, UNKNOWN or OUTSIDE
    clusters: Integers  # (N,): the earlier cluster, or UNKNOWN
    separated: Integers  # (N,): the part into which a split moved the image, or UNKNOWN
    refused: Integers  # (M, 2): rows, and clusters that are not theirs
    apart: Integers  # (K, 2): images of the first cluster do not go to the second

    def constraints(self, rows: npt.NDArray[np.integer] | None) -> Constraints:
        """Those of the rows that are trained on, in ascending order; by default of all."""
        if rows is None:
            return Constraints(labels=self.labels, clusters=self.clusters, refused=self.refused)
        place = np.minimum(np.searchsorted(rows, self.refused[:, 0]), len(rows) - 1)
        trained = rows[place] == self.refused[:, 0]
        return Constraints(
            labels=self.labels[rows],
            clusters=self.clusters[rows],
            refused=np.stack([place[trained], self.refused[trained, 1]], axis=1),
        )

    def keep(
        self, found: npt.NDArray[np.int32], features: npt.NDArray[np.float32], model: ClusterModel
    ) -> npt.NDArray[np.int32]:
        """Return the clusters (N,) that the model found, changed where people said otherwise."""
        kept = found.copy()
        wrong = np.flatnonzero(self._is_refused(found))
        for part in chunks(len(wrong)):
            rows = wrong[part]
            kept[rows] = self._best_allowed(rows, model.predict_proba(features[rows]))
        kept = np.where(self.separated == UNKNOWN, kept, self.separated)
        kept = np.where(self.labels >= 0, self.labels, kept)
        return np.where(self.labels == OUTSIDE, EXCLUDED, kept).astype(np.int32)

    def _is_refused(self, found: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        refused = np.zeros(len(found), dtype=bool)
        row, cluster = self.refused.T
        refused[row[found[row] == cluster]] = True
        for earlier, part in self.apart:
            refused |= (self.clusters == earlier) & (found == part)
        return refused

    def _best_allowed(
        self, rows: Integers, probabilities: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.int64]:
        """The most probable cluster that was not refused; EXCLUDED if all were."""
        allowed = np.ones(probabilities.shape, dtype=bool)
        place = np.minimum(np.searchsorted(rows, self.refused[:, 0]), len(rows) - 1)
        here = rows[place] == self.refused[:, 0]
        allowed[place[here], self.refused[here, 1]] = False
        for earlier, part in self.apart:
            allowed[self.clusters[rows] == earlier, part] = False
        best = np.where(allowed, probabilities, -1.0).argmax(axis=1)
        return np.where(allowed.any(axis=1), best, EXCLUDED)

    def answers(self, image_ids: Sequence[str]) -> Iterator[CarriedAnswer]:
        """What people said, as reviews of the new clustering."""
        for row in np.flatnonzero(self.labels != UNKNOWN).tolist():
            said = EXCLUDED if self.labels[row] == OUTSIDE else int(self.labels[row])
            yield CarriedAnswer(image_ids[row], said, said)
        rows, first = np.unique(self.refused[:, 0], return_index=True)  # one answer of each image
        for row, place in zip(rows.tolist(), first.tolist(), strict=True):
            if self.labels[row] == UNKNOWN:
                yield CarriedAnswer(image_ids[row], int(self.refused[place, 1]), None)
