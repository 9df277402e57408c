"""A finished clustering: which image is in which cluster, and how sure that is."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from app.core.errors import NotFound
from app.core.tables import Assignment, Cluster, Clustering, Image

_INSERT_ROWS = 10_000
_EXAMPLES = 8


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


def cluster_label(cluster_id: int) -> str:
    """The name of a cluster until somebody gives it a better one."""
    return f"cluster {cluster_id}"


def add_clusters(session: Session, clustering_id: str, numbers: Iterable[int]) -> None:
    """New and empty ones; `refresh_clusters` counts who is in them."""
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
    """A row for every image, in bounded pieces."""
    for chunk in _chunks(rows):
        values = [{"clustering_id": clustering_id, **row._asdict()} for row in chunk]
        session.execute(insert(Assignment), values)


def refresh_clusters(
    session: Session, clustering_id: str, cluster_ids: Sequence[int] | None = None
) -> None:
    """Count anew who is in each cluster, or in these only."""
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


def surest_images(
    session: Session, clustering_id: str, cluster_id: int, limit: int = _EXAMPLES
) -> list[tuple[Assignment, Image]]:
    """The members of a cluster that the model is surest of."""
    rows = session.execute(
        select(Assignment, Image)
        .join(Image, Image.id == Assignment.image_id)
        .where(Assignment.clustering_id == clustering_id, Assignment.cluster_id == cluster_id)
        .order_by(Assignment.probability.desc(), Assignment.image_id)
        .limit(limit)
    )
    return [(assignment, image) for assignment, image in rows]


def _chunks(rows: Iterable[Assigned]) -> Iterator[list[Assigned]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, _INSERT_ROWS)):
        yield chunk
