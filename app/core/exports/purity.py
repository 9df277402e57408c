"""Which labels are pure enough to be exported."""

from collections.abc import Iterable

from sqlalchemy.orm import Session

from app.core.clusterings.review.queries import reviewed
from app.core.clusterings.revisions import LabeledImage


class PurityFilter:
    """Keeps the images of these clusters, and in others those that people have confirmed. Images
    that people said are wrong are left out everywhere."""

    def __init__(self, session: Session, clustering_id: str, clusters: Iterable[int]) -> None:
        self._clusters = frozenset(clusters)
        # In memory: no more than people can look at.
        self._said = {row.image_id: row[1:] for row in reviewed(session, clustering_id)}

    def keeps(self, row: LabeledImage) -> bool:
        if row.excluded:
            return True  # decided by another filter
        asked, said = self._said.get(row.image_id, (None, None))
        if said == row.cluster_id:
            return True
        return asked != row.cluster_id and row.cluster_id in self._clusters
