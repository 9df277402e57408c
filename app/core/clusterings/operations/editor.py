"""Changes clusters and assignments, and records their state before."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    SQLColumnExpression,
    and_,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.core.clusterings.rows import Assigned, add_assignments, refresh_clusters
from app.core.platform.errors import InvalidRequest
from app.core.platform.streams import batched
from app.core.platform.tables import (
    ABSENT,
    EXCLUDED,
    Assignment,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
)

T = TypeVar("T")
_CHUNK = 5_000  # values in one statement
_CHANGE_COLUMNS = ["clustering_id", "image_id", "revision", "before"]


class ClusteringEditor:
    """Lock the clustering before. The database moves the images; they are not loaded."""

    def __init__(self, session: Session, clustering: Clustering) -> None:
        self.session = session
        self.clustering = clustering
        self.revision = clustering.revision + 1
        self._clusters_before: dict[str, Any] = {}
        self._resized: set[int] = set()
        self._moved = 0

    def clusters(self, field: str, cluster_ids: Sequence[int]) -> list[Cluster]:
        """The active clusters with these ids, in this order; errors name `field`."""
        found: dict[int, Cluster] = {}
        for chunk in chunked(cluster_ids):
            rows = self.session.scalars(
                select(Cluster).where(
                    Cluster.clustering_id == self.clustering.id, Cluster.cluster_id.in_(chunk)
                )
            )
            found |= {row.cluster_id: row for row in rows}
        for cluster_id in cluster_ids:
            if cluster_id not in found:
                raise InvalidRequest.field(field, f"there is no cluster {cluster_id}")
            if not found[cluster_id].active:
                raise InvalidRequest.field(
                    field, f"cluster {cluster_id} was merged into another or undone"
                )
        return [found[cluster_id] for cluster_id in cluster_ids]

    def change(
        self, cluster: Cluster, *, label: str | None = None, named: bool = True, active: bool
    ) -> None:
        """Changes name and state; without `label` it keeps its name."""
        before = {"label": cluster.label, "named": cluster.named, "active": cluster.active}
        self._clusters_before.setdefault(str(cluster.cluster_id), before)
        if label is not None:
            cluster.label, cluster.named = label, named
        self.clustering.n_clusters += active - cluster.active
        cluster.active = active

    def add_cluster(self, label: str, *, named: bool) -> int:
        """Adds an empty cluster; returns its number. `named`: a person gave the label."""
        number = self.clustering.next_cluster_id
        self.clustering.next_cluster_id = number + 1
        self.clustering.n_clusters += 1
        self.session.add(
            Cluster(
                clustering_id=self.clustering.id,
                cluster_id=number,
                label=label,
                named=named,
                size=0,
            )
        )
        self.session.flush()
        self._clusters_before[str(number)] = {"label": None, "active": False}
        return number

    def move(self, images: ColumnElement[bool], to: int) -> int:
        """Moves images to a cluster; those that are in it already are not recorded. Returns the
        number of the others."""
        rows = and_(
            Assignment.clustering_id == self.clustering.id, Assignment.cluster_id != to, images
        )
        self._record(rows)
        self._resized.add(to)
        moved = self._assign(rows, literal(to))
        self._moved += moved
        return moved

    def move_images(self, image_ids: Sequence[str], to: int) -> None:
        for chunk in chunked(image_ids):
            self.move(Assignment.image_id.in_(chunk), to)

    def add_images(self, rows: Sequence[Assigned]) -> None:
        """Adds images to the clustering; earlier revisions stay without them."""
        add_assignments(self.session, self.clustering.id, rows)
        for chunk in chunked(rows):
            changes = [
                {
                    "clustering_id": self.clustering.id,
                    "image_id": row.image_id,
                    "revision": self.revision,
                    "before": ABSENT,
                }
                for row in chunk
            ]
            self.session.execute(insert(AssignmentChange), changes)
        self._resized.update(row.cluster_id for row in rows)
        self.clustering.image_count += len(rows)

    def restore(self, revision: int) -> None:
        """Moves the images back that a revision moved, except deleted ones."""
        # A join with the changes, not `IN`: that would read all images of the clustering.
        rows = and_(
            AssignmentChange.clustering_id == self.clustering.id,
            AssignmentChange.revision == revision,
            Assignment.clustering_id == self.clustering.id,
            Assignment.image_id == AssignmentChange.image_id,
        )
        self._record(rows)
        self._resized |= self._clusters_before_changes(revision)
        self._moved += self._assign(rows, AssignmentChange.before)

    def finish(
        self,
        kind: str,
        arguments: dict[str, Any],
        *,
        created_by: str | None,
        undoes: int | None = None,
    ) -> ClusteringOperation:
        """Adds the operation to the history and updates the sizes of the changed clusters."""
        row = ClusteringOperation(
            clustering_id=self.clustering.id,
            revision=self.revision,
            kind=kind,
            arguments=arguments,
            clusters_before=self._clusters_before,
            moved=self._moved,
            undoes=undoes,
            created_by=created_by,
        )
        self.session.add(row)
        self.clustering.revision = self.revision
        self.session.flush()
        self._resized |= self._clusters_before_changes(self.revision)
        for chunk in chunked(sorted(self._resized - {EXCLUDED, ABSENT})):
            refresh_clusters(self.session, self.clustering.id, chunk)
        return row

    def _clusters_before_changes(self, revision: int) -> set[int]:
        """The clusters from which a revision has moved images."""
        query = select(AssignmentChange.before).where(
            AssignmentChange.clustering_id == self.clustering.id,
            AssignmentChange.revision == revision,
        )
        return set(self.session.scalars(query.distinct()))

    def _record(self, rows: ColumnElement[bool]) -> None:
        before = select(
            Assignment.clustering_id,
            Assignment.image_id,
            literal(self.revision),
            Assignment.cluster_id,
        )
        self.session.execute(
            insert(AssignmentChange).from_select(_CHANGE_COLUMNS, before.where(rows))
        )

    def _assign(self, rows: ColumnElement[bool], cluster_id: SQLColumnExpression[int]) -> int:
        result = self.session.execute(
            update(Assignment)
            .where(rows)
            .values(cluster_id=cluster_id)
            .execution_options(synchronize_session=False)
        )
        assert isinstance(result, CursorResult)
        return result.rowcount


def chunked(values: Iterable[T]) -> Iterator[list[T]]:
    """Lists of values that fit into one statement."""
    return batched(values, _CHUNK)
