"""Rows of clusterings, clusters and assignments."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    SQLColumnExpression,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.core.platform.activity import report_activity
from app.core.platform.errors import NotFound
from app.core.platform.streams import batched
from app.core.platform.tables import Assignment, Cluster, Clustering, Image

_INSERT_ROWS = 10_000
_IN_VALUES = 5_000  # in one statement
EXAMPLES = 8


class Ranking(NamedTuple):
    """An order of a cluster's images that an index supports.

    Equal values are ordered by id in the same direction, as in the index.
    """

    column: SQLColumnExpression[float]
    descending: bool

    def order(self, key: InstrumentedAttribute[str]) -> tuple[ColumnElement[Any], ...]:
        columns: tuple[SQLColumnExpression[Any], ...] = (self.column, key)
        return tuple(c.desc() if self.descending else c.asc() for c in columns)

    def after(
        self, key: InstrumentedAttribute[str], number: float, last: str
    ) -> ColumnElement[bool]:
        row, cursor = tuple_(self.column, key), tuple_(number, last)
        return row < cursor if self.descending else row > cursor


RANKINGS = {
    "representative": Ranking(Assignment.probability, descending=True),
    "borderline": Ranking(Assignment.margin, descending=False),
    "outlier": Ranking(Assignment.distance, descending=True),
}


class Example(NamedTuple):
    """A typical image of a cluster."""

    image_id: str
    name: str
    probability: float


class Assigned(NamedTuple):
    image_id: str
    cluster_id: int
    probability: float
    margin: float
    distance: float


def get_clustering(session: Session, tenant: str, clustering_id: str) -> Clustering:
    found = session.scalar(
        select(Clustering).where(Clustering.id == clustering_id, Clustering.tenant == tenant)
    )
    if found is None:
        raise clustering_not_found(clustering_id)
    return found


def get_revision(session: Session, tenant: str, clustering_id: str) -> int:
    """The current revision, without the other columns."""
    found = session.scalar(
        select(Clustering.revision).where(
            Clustering.id == clustering_id, Clustering.tenant == tenant
        )
    )
    if found is None:
        raise clustering_not_found(clustering_id)
    return found


def clustering_not_found(clustering_id: str) -> NotFound:
    return NotFound(f"There is no clustering {clustering_id}.")


def get_cluster(session: Session, clustering: Clustering, cluster_id: int) -> Cluster:
    """An active cluster; raises NotFound."""
    found = session.get(Cluster, (clustering.id, cluster_id))
    if found is None or not found.active:
        raise NotFound(f"There is no cluster {cluster_id} in this clustering.")
    return found


def cluster_label(cluster_id: int) -> str:
    """The name of a cluster before it is renamed."""
    return f"cluster {cluster_id}"


def add_clusters(session: Session, clustering_id: str, numbers: Iterable[int]) -> None:
    """Adds empty clusters; `refresh_clusters` sets their sizes."""
    rows = [
        {
            "clustering_id": clustering_id,
            "cluster_id": number,
            "label": cluster_label(number),
            "active": True,
            "size": 0,
        }
        for number in numbers
    ]
    session.execute(insert(Cluster), rows)


def add_assignments(session: Session, clustering_id: str, rows: Iterable[Assigned]) -> None:
    """Inserts the rows in chunks."""
    for chunk in batched(rows, _INSERT_ROWS):
        values = [{"clustering_id": clustering_id, **row._asdict()} for row in chunk]
        session.execute(insert(Assignment), values)
        report_activity()


def refresh_clusters(
    session: Session, clustering_id: str, cluster_ids: Sequence[int] | None = None
) -> None:
    """Updates size and mean probability of all clusters, or of these."""
    members = (
        Assignment.clustering_id == clustering_id,
        Assignment.cluster_id == Cluster.cluster_id,
    )
    size = select(func.count()).select_from(Assignment).where(*members)
    mean = select(func.avg(Assignment.probability)).where(*members)
    statement = update(Cluster).where(Cluster.clustering_id == clustering_id)
    if cluster_ids is not None:
        statement = statement.where(Cluster.cluster_id.in_(cluster_ids))
    session.execute(
        statement.values(
            size=size.scalar_subquery(), mean_probability=mean.scalar_subquery()
        ).execution_options(synchronize_session=False)
    )


def ranked_images(
    session: Session,
    clustering_id: str,
    cluster_id: int,
    ranking: Ranking = RANKINGS["representative"],
    *,
    limit: int = EXAMPLES,
    exclude: Sequence[str] = (),
) -> list[tuple[Assignment, Image]]:
    """The first images of a cluster in an order; by default the most probable ones."""
    rows = session.execute(
        select(Assignment, Image)
        .join(Image, Image.id == Assignment.image_id)
        .where(Assignment.clustering_id == clustering_id, Assignment.cluster_id == cluster_id)
        .where(Assignment.image_id.not_in(exclude))
        .order_by(*ranking.order(Assignment.image_id))
        .limit(limit)
    )
    return [(assignment, image) for assignment, image in rows]


def examples(
    session: Session, clustering_id: str, cluster_ids: Sequence[int], count: int = EXAMPLES
) -> dict[int, list[Example]]:
    """The most probable images of each cluster, as `ranked_images` finds them, but in two
    statements for all clusters."""
    image_ids = representative_ids(session, clustering_id, cluster_ids, count) if count else {}
    found = read_examples(session, clustering_id, list(chain.from_iterable(image_ids.values())))
    return {
        number: sorted(
            (found[one] for one in image_ids.get(number, ()) if one in found),
            key=lambda example: (example.probability, example.image_id),
            reverse=True,
        )
        for number in cluster_ids
    }


def read_examples(
    session: Session, clustering_id: str, image_ids: Sequence[str]
) -> dict[str, Example]:
    """By image id, without images that are no longer in the clustering."""
    # Looked up one by one: with a join the database may read all images of the clustering.
    probability = (
        select(Assignment.probability)
        .where(Assignment.clustering_id == clustering_id, Assignment.image_id == Image.id)
        .scalar_subquery()
    )
    found: dict[str, Example] = {}
    for chunk in batched(image_ids, _IN_VALUES):
        rows = session.execute(select(Image.id, Image.name, probability).where(Image.id.in_(chunk)))
        found |= {row[0]: Example(*row) for row in rows if row[2] is not None}
    return found


def representative_ids(
    session: Session, clustering_id: str, cluster_ids: Sequence[int], count: int
) -> dict[int, list[str]]:
    """The most probable images of each cluster that has images."""
    # Joined to one text by the database: the first rows of many groups otherwise need a window
    # over all images, or LATERAL, which SQLite does not have.
    first = (
        select(Assignment.image_id)
        .where(
            Assignment.clustering_id == Cluster.clustering_id,
            Assignment.cluster_id == Cluster.cluster_id,
        )
        .order_by(*RANKINGS["representative"].order(Assignment.image_id))
        .limit(count)
        .correlate(Cluster)
        .subquery()
    )
    joined = select(func.aggregate_strings(first.c.image_id, " ")).scalar_subquery()
    rows = session.execute(
        select(Cluster.cluster_id, joined).where(
            Cluster.clustering_id == clustering_id, Cluster.cluster_id.in_(cluster_ids)
        )
    )
    return {number: text.split(" ") for number, text in rows if text}
