"""Rows of clusterings, clusters and assignments."""

from collections.abc import Iterable, Sequence
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
_EXAMPLES = 8


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
        raise NotFound(f"There is no clustering {clustering_id}.")
    return found


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
    limit: int = _EXAMPLES,
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
