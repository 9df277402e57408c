"""Which labels are pure enough to be exported."""

from collections.abc import Iterable

from sqlalchemy.orm import Session

from app.core.clusterings.review.queries import placed_by_hand, reviewed
from app.core.clusterings.revisions import LabeledImage


class PurityFilter:
    """Keeps images that people have confirmed, and others of these clusters, or of at least this
    probability unless they were placed by hand. Images that people said are wrong are left out."""

    def __init__(
        self,
        session: Session,
        clustering_id: str,
        clusters: Iterable[int] = (),
        probability: float | None = None,
    ) -> None:
        self._clusters = frozenset(clusters)
        self._probability = probability
        by_hand = () if probability is None else session.scalars(placed_by_hand(clustering_id))
        self._by_hand = frozenset(by_hand)
        # In memory: no more than people can look at.
        self._said = {row.image_id: row[1:] for row in reviewed(session, clustering_id)}

    def keeps(self, row: LabeledImage) -> bool:
        if row.excluded:
            return True  # decided by another filter
        asked, said = self._said.get(row.image_id, (None, None))
        if said == row.cluster_id:
            return True
        return asked != row.cluster_id and self._is_proven(row)

    def _is_proven(self, row: LabeledImage) -> bool:
        if self._probability is None:
            return row.cluster_id in self._clusters
        return row.probability >= self._probability and row.image_id not in self._by_hand
