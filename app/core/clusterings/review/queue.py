"""The images that people are asked about next.

First a random sample of each cluster, spread over the bands of probabilities in proportion; then
the least sure images of the clusters that are nearest to the purity. The order at random is that of
the SHA-256 of the images: it is the same for everyone, needs no state, and no model knows it.
"""

import heapq
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, SQLColumnExpression, select
from sqlalchemy.orm import Session

from app.core.clusterings.review.bands import ReviewedCluster, ReviewState, read_state
from app.core.clusterings.review.collection_planning import TARGET
from app.core.clusterings.review.collection_queue import next_images
from app.core.clusterings.review.collection_report import (
    PROOF,
    CollectionState,
    Proof,
    review_collection,
)
from app.core.clusterings.review.planning import MIN_PURITY, PILOT, Plan, plan_clusters
from app.core.clusterings.review.purity import CONFIDENCE, Band
from app.core.clusterings.review.queries import is_reviewed
from app.core.platform.tables import Assignment, Clustering, Image

QueueOrder = Literal["sample", "gain"]
_TOGETHER = 25  # images of a cluster in a row: it is faster to judge images of one group


class Question(NamedTuple):
    """Does the image belong to the cluster?"""

    image_id: str
    name: str
    cluster_id: int
    label: str
    probability: float
    sample: bool  # of the random sample; otherwise chosen for what the answer gains


@dataclass(frozen=True, kw_only=True)
class Queue:
    revision: int
    questions: list[Question]
    expected: int  # answers until all clusters, or the labels as a whole, are proven to be pure


class _Planned(NamedTuple):
    reviewed: ReviewedCluster
    plan: Plan


def read_queue(
    session: Session,
    clustering: Clustering,
    *,
    limit: int,
    order: QueueOrder | None = None,
    labeler: str | None = None,
    min_purity: float = MIN_PURITY,
    confidence: float = CONFIDENCE,
    target: float = TARGET,
    proof: Proof = PROOF,
) -> Queue:
    """Without an order, the sample comes first. Labelers with different names begin with different
    clusters; if two meet, the later answer about an image counts."""
    state = read_state(session, clustering)
    if proof == "collection":
        whole = review_collection(session, state, min_purity, confidence, target)
        return Queue(
            revision=clustering.revision,
            questions=_of_collection(session, state, whole, limit, order, labeler),
            expected=whole.review.answers_left,
        )
    plans = plan_clusters([one.bands for one in state.clusters], min_purity, confidence)
    planned = [_Planned(*pair) for pair in zip(state.clusters, plans, strict=True)]
    planned = [one for one in planned if one.plan.answers]
    planned.sort(key=lambda one: _rank(one, labeler))
    found = _questions(session, state, planned, order)
    return Queue(
        revision=clustering.revision,
        questions=list(islice(found, limit)),
        expected=sum(plan.answers for plan in plans),
    )


def _rank(one: _Planned, labeler: str | None) -> tuple[bool, float, int]:
    """Clusters without an estimate first, then those that gain most."""
    known = one.reviewed.total("sampled") >= PILOT
    number = one.reviewed.cluster.cluster_id
    if labeler is not None:
        return (known, zlib.crc32(f"{labeler} {number}".encode()), number)
    return (known, -one.plan.gain, number)


def _questions(
    session: Session, state: ReviewState, planned: list[_Planned], order: QueueOrder | None
) -> Iterator[Question]:
    if order != "gain":
        for one in planned:
            yield from _sample(session, state, one)
    if order != "sample":
        for one in planned:
            yield from _least_sure(session, state, one)


def _sample(session: Session, state: ReviewState, one: _Planned) -> Iterator[Question]:
    count = min(one.plan.sample, _TOGETHER)
    for band, wanted in spread(one.reviewed.bands, one.plan.bands, count).items():
        within = _within(state.edges, band)
        yield from _read(session, state, one, within, (Image.sha256, Image.id), wanted, sample=True)


def spread(bands: Sequence[Band], first: int, count: int) -> dict[int, int]:
    """How many of `count` images to take from each band, so that the whole sample of each is in
    proportion to its images."""
    heap = [
        ((band.sampled + 0.5) / band.unreviewed, number)
        for number, band in enumerate(bands)
        if number >= first and band.unreviewed
    ]
    heapq.heapify(heap)
    taken: dict[int, int] = {}
    for _ in range(count):
        if not heap:
            break
        share, number = heap[0]
        taken[number] = taken.get(number, 0) + 1
        if taken[number] == bands[number].unreviewed:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (share + 1 / bands[number].unreviewed, number))
    return dict(sorted(taken.items()))


def _least_sure(session: Session, state: ReviewState, one: _Planned) -> Iterator[Question]:
    if not one.plan.bands:
        return
    last = one.plan.bands - 1
    below = [Assignment.probability < edge for edge in state.edges[last : last + 1]]
    order = (Assignment.probability, Assignment.image_id)
    yield from _read(session, state, one, below, order, _TOGETHER, sample=False)


def _within(edges: list[float], band: int) -> list[ColumnElement[bool]]:
    found = []
    if band > 0:
        found.append(Assignment.probability >= edges[band - 1])
    if band < len(edges):
        found.append(Assignment.probability < edges[band])
    return found


def _read(
    session: Session,
    state: ReviewState,
    one: _Planned,
    within: list[ColumnElement[bool]],
    order: tuple[SQLColumnExpression[Any], ...],
    count: int,
    *,
    sample: bool,
) -> Iterator[Question]:
    cluster, own = one.reviewed.cluster, state.clustering.id
    rows = session.execute(
        select(Assignment.image_id, Image.name, Assignment.probability)
        .join(Image, Image.id == Assignment.image_id)
        .where(
            Assignment.clustering_id == own,
            Assignment.cluster_id == cluster.cluster_id,
            ~is_reviewed(own, state.lineage.sources(cluster.cluster_id)),
            *within,
        )
        .order_by(*order)
        .limit(count)
    )
    for image_id, name, probability in rows:
        yield Question(image_id, name, cluster.cluster_id, cluster.label, probability, sample)


def _of_collection(
    session: Session,
    state: ReviewState,
    whole: CollectionState,
    limit: int,
    order: QueueOrder | None,
    labeler: str | None,
) -> list[Question]:
    if whole.plan is None:
        return []
    drawn, doubtful = next_images(whole.collection, whole.plan, limit, labeler)
    drawn = [] if order == "gain" else drawn
    doubtful = [] if order == "sample" else doubtful
    labels = {one.cluster.cluster_id: one.cluster.label for one in state.clusters}
    rows = session.execute(
        select(Assignment.image_id, Image.name, Assignment.cluster_id, Assignment.probability)
        .join(Image, Image.id == Assignment.image_id)
        .where(
            Assignment.clustering_id == state.clustering.id,
            Assignment.image_id.in_([*drawn, *doubtful]),
        )
    )
    found = {row.image_id: row for row in rows if row.cluster_id in labels}
    chosen = set(doubtful)
    wanted = [found[image_id] for image_id in [*drawn, *doubtful] if image_id in found][:limit]
    together = [wanted[start : start + _TOGETHER] for start in range(0, len(wanted), _TOGETHER)]
    return [
        Question(*row[:3], labels[row.cluster_id], row.probability, row.image_id not in chosen)
        for some in together
        for row in sorted(some, key=lambda one: one.cluster_id)
    ]
