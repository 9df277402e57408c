"""The difference of two clusterings of a dataset, group by group."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.clusterings.operations.editor import chunked
from app.core.clusterings.retraining.by_hand import placed_by_hand
from app.core.clusterings.retraining.pair import Decision, Pair, count_missing, read_pair
from app.core.clusterings.retraining.transitions import Status
from app.core.platform.tables import ABSENT, Assignment, Cluster

_MAX_SOURCES = 5


class Part(NamedTuple):
    """Images that an old group and a new cluster have in common."""

    cluster_id: int
    label: str
    images: int
    share: float  # of the images of the group, or of the cluster, that it is a part of


@dataclass(frozen=True, kw_only=True)
class GroupChange:
    """What becomes of a group of the old clustering."""

    cluster_id: int
    label: str
    named: bool
    size: int
    status: Status
    suggested: Decision
    into: list[Part]  # new clusters
    merged_with: list[int]  # other groups
    stayed: int  # images that are in the clusters of `into`
    left: int
    came: int  # from other groups to the clusters that continue this one
    added: int  # there, too, but the old clustering lacks them
    by_hand: int  # images that a person has placed in it


@dataclass(frozen=True, kw_only=True)
class AppearedCluster:
    """A new cluster that continues no group."""

    cluster_id: int
    label: str
    named: bool
    size: int
    added: int
    sources: list[Part]  # groups that its images come from, largest first


@dataclass(frozen=True, kw_only=True)
class Changes:
    clustering_id: str
    revision: int
    since: str
    since_revision: int
    images: int  # of both clusterings
    added: int  # only of the new one
    missing: int  # only of the old one
    groups: list[GroupChange]
    appeared: list[AppearedCluster]


def read_changes(session: Session, tenant: str, clustering_id: str, since: str) -> Changes:
    pair = read_pair(session, tenant, clustering_id, since)
    table = _Table(pair)
    by_hand = _count_by_hand(session, pair)
    groups = [table.group(number, by_hand.get(number, 0)) for number in sorted(pair.groups)]
    held = pair.transitions.holders
    appeared = [table.appeared(number) for number in sorted(pair.clusters) if number not in held]
    common = int(pair.images.count[pair.images.left != ABSENT].sum())
    return Changes(
        clustering_id=pair.new.id,
        revision=pair.new.revision,
        since=pair.old.id,
        since_revision=pair.old.revision,
        images=common,
        added=pair.images.total - common,
        missing=count_missing(session, pair),
        groups=groups,
        appeared=appeared,
    )


class _Table:
    """Sums of the contingency table."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.pairs: dict[tuple[int, int], int] = {}
        self.rows: dict[int, list[tuple[int, int]]] = {}  # group -> new clusters and images
        self.columns: dict[int, list[tuple[int, int]]] = {}
        images = pair.images
        for old, new, count in zip(
            images.left.tolist(), images.right.tolist(), images.count.tolist(), strict=True
        ):
            self.pairs[old, new] = count
            self.rows.setdefault(old, []).append((new, count))
            self.columns.setdefault(new, []).append((old, count))

    def group(self, number: int, by_hand: int) -> GroupChange:
        pair, row = self.pair, self.pair.groups[number]
        total = sum(count for _, count in self.rows.get(number, []))
        into = pair.transitions.goes_to.get(number, [])
        stayed = sum(self.pairs[number, each] for each in into)
        parts = pair.parts(number)
        here = [entry for each in parts for entry in self.columns[each]]
        added = sum(count for old, count in here if old == ABSENT)
        return GroupChange(
            cluster_id=number,
            label=row.label,
            named=row.named,
            size=row.size,
            status=pair.status(number),
            suggested=pair.suggested(number),
            into=[
                self._part(pair.clusters[each], self.pairs[number, each], total) for each in into
            ],
            merged_with=pair.transitions.merged_with(number),
            stayed=stayed,
            left=total - stayed,
            came=sum(count for old, count in here if old not in (ABSENT, number)),
            added=added,
            by_hand=by_hand,
        )

    def appeared(self, number: int) -> AppearedCluster:
        row, column = self.pair.clusters[number], self.columns.get(number, [])
        known = sorted((e for e in column if e[0] >= 0), key=lambda e: (-e[1], e[0]))
        sources = known[:_MAX_SOURCES]
        return AppearedCluster(
            cluster_id=number,
            label=row.label,
            named=row.named,
            size=row.size,
            added=sum(count for old, count in column if old == ABSENT),
            sources=[self._part(self.pair.groups[old], n, row.size) for old, n in sources],
        )

    def _part(self, cluster: Cluster, images: int, total: int) -> Part:
        return Part(cluster.cluster_id, cluster.label, images, images / max(1, total))


def _count_by_hand(session: Session, pair: Pair) -> dict[int, int]:
    found: dict[int, int] = {}
    for chunk in chunked(placed_by_hand(session, pair.old)):
        rows = session.execute(
            select(Assignment.cluster_id, func.count())
            .where(
                Assignment.clustering_id == pair.old.id,
                Assignment.image_id.in_([image_id.decode() for image_id in chunk]),
            )
            .group_by(Assignment.cluster_id)
        )
        for number, count in rows:
            found[number] = found.get(number, 0) + count
    return found
