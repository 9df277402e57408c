"""Example images of a change: those that stayed in a group, left it, or came to it."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session, aliased

from app.core.clusterings.retraining.pair import get_both
from app.core.platform.tables import ABSENT, Assignment, Cluster, Clustering, Image


class ChangedImage(NamedTuple):
    image_id: str
    name: str
    cluster_id: int | None  # that it left for or came from; None: excluded, or not in the old one
    label: str | None


class ChangedImages(NamedTuple):
    stayed: list[ChangedImage]
    left: list[ChangedImage]
    came: list[ChangedImage]


def read_changed_images(
    session: Session,
    tenant: str,
    clustering_id: str,
    since: str,
    *,
    group: int,
    into: Sequence[int],
    limit: int,
) -> ChangedImages:
    """The most probable images of each kind, for a group of `since` that goes to these clusters."""
    old, new = get_both(session, tenant, clustering_id, since)
    before, after = aliased(Assignment), aliased(Assignment)
    was_here = func.coalesce(before.cluster_id, ABSENT) == group
    is_here = after.cluster_id.in_(into)

    def find(there: type[Assignment], *given: ColumnElement[bool]) -> list[ChangedImage]:
        query = _select(old, new, before, after, there).where(*given).limit(limit)
        return [ChangedImage(*row) for row in session.execute(query)]

    return ChangedImages(
        stayed=find(after, was_here, is_here),
        left=find(after, was_here, ~is_here),
        came=find(before, ~was_here, is_here),
    )


def _select(
    old: Clustering,
    new: Clustering,
    before: type[Assignment],
    after: type[Assignment],
    there: type[Assignment],
) -> Select[str, str, int, str]:
    """With the cluster of the image that `there` has."""
    return (
        select(Image.id, Image.name, Cluster.cluster_id, Cluster.label)
        .select_from(after)
        .join(Image, Image.id == after.image_id)
        .outerjoin(before, (before.image_id == after.image_id) & (before.clustering_id == old.id))
        .outerjoin(
            Cluster,
            (Cluster.clustering_id == there.clustering_id)
            & (Cluster.cluster_id == there.cluster_id),
        )
        .where(after.clustering_id == new.id)
        .order_by(after.probability.desc(), after.image_id)
    )
