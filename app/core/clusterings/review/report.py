"""How pure each cluster is, how many labels are finished, and how many answers are left."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.core.clusterings.review.bands import ReviewedCluster, read_state
from app.core.clusterings.review.collection_planning import TARGET
from app.core.clusterings.review.collection_report import (
    PROOF,
    Basis,
    CollectionReview,
    Forecast,
    Proof,
    forecast_summary,
    review_collection,
)
from app.core.clusterings.review.planning import (
    MIN_PURITY,
    Plan,
    doubt_scale,
    expected_purity,
    plan_clusters,
)
from app.core.clusterings.review.purity import CONFIDENCE, Purity, purity_of
from app.core.platform.tables import Clustering

_WORTH = 1.1  # images that an answer must gain; below it, one could as well label each by hand


class ClusterReview(NamedTuple):
    cluster_id: int
    label: str
    named: bool
    size: int
    reviewed: int  # members that people have seen
    wrong: int  # members that people said do not belong to it
    sampled: int  # random answers
    purity: float | None  # None if it is empty
    lower: float | None  # None before a random answer
    upper: float | None
    basis: Basis  # of `purity`
    meets: bool  # the lower bound reaches the purity
    answers_left: int  # expected until it does


@dataclass(frozen=True, kw_only=True)
class Report:
    revision: int
    min_purity: float
    confidence: float
    images: int  # with excluded ones
    excluded_images: int
    reviewed_images: int
    finished_images: int
    clusters: list[ClusterReview]
    collection: CollectionReview
    proof: Proof  # that finished images and the forecast are about
    forecast: Forecast


def read_report(
    session: Session,
    clustering: Clustering,
    *,
    min_purity: float = MIN_PURITY,
    confidence: float = CONFIDENCE,
    target: float = TARGET,
    proof: Proof = PROOF,
) -> Report:
    state = read_state(session, clustering)
    whole = review_collection(session, state, min_purity, confidence, target)
    plans = plan_clusters([one.bands for one in state.clusters], min_purity, confidence)
    scale = doubt_scale([band for one in state.clusters for band in one.bands])
    rows = [
        _row(one, plan, scale, min_purity, confidence)
        for one, plan in zip(state.clusters, plans, strict=True)
    ]
    groups = state.excluded + sum(_finished(row) for row in rows)
    images = state.excluded + sum(row.size for row in rows)
    return Report(
        revision=clustering.revision,
        min_purity=min_purity,
        confidence=confidence,
        images=images,
        excluded_images=state.excluded,
        reviewed_images=sum(row.reviewed for row in rows),
        finished_images=groups if proof == "groups" else whole.finished,
        clusters=rows,
        collection=whole.review,
        proof=proof,
        forecast=_forecast(rows, plans, images, groups, min_purity, target)
        if proof == "groups"
        else whole.forecast,
    )


def pure_clusters(session: Session, clustering: Clustering, min_purity: float) -> list[int]:
    """The clusters whose lower bound reaches the purity."""
    found = []
    for one in read_state(session, clustering).clusters:
        purity = purity_of(one.bands)
        if purity is not None and purity.reaches(min_purity):
            found.append(one.cluster.cluster_id)
    return found


def _row(
    one: ReviewedCluster, plan: Plan, scale: float, min_purity: float, confidence: float
) -> ClusterReview:
    found: Purity | None = purity_of(one.bands, confidence)
    cluster, meets = one.cluster, found is not None and found.reaches(min_purity)
    return ClusterReview(
        cluster_id=cluster.cluster_id,
        label=cluster.label,
        named=cluster.named,
        size=one.size,
        reviewed=one.total("right") + one.total("wrong"),
        wrong=one.total("wrong"),
        sampled=one.total("sampled"),
        purity=found.estimate if found else expected_purity(one.bands, scale),
        lower=found.lower if found else None,
        upper=found.upper if found else None,
        basis="answers" if found else "probabilities",
        meets=meets,
        answers_left=0 if meets else plan.answers,
    )


def _finished(row: ClusterReview) -> int:
    """All images of a cluster that is pure enough, and in others those that people confirmed."""
    return row.size - row.wrong if row.meets else row.reviewed - row.wrong


def _forecast(
    rows: Sequence[ClusterReview],
    plans: Sequence[Plan],
    images: int,
    finished: int,
    min_purity: float,
    target: float,
) -> Forecast:
    """Adds clusters in the order of what an answer gains, until the target is reached, or until
    answers gain no more images than they cover."""
    pairs = sorted(zip(rows, plans, strict=True), key=lambda pair: (-pair[1].gain, pair[0]))
    done, answers, name = float(finished), 0, sum(row.meets and not row.named for row in rows)
    basis: Basis = "answers" if any(row.basis == "answers" for row in rows) else "probabilities"
    left = 0
    for row, plan in pairs:
        if row.meets or not row.size:
            continue
        if done >= target * images or plan.gain < _WORTH:
            left += 1
            continue
        done += plan.images - _finished(row)
        answers += plan.answers
        name += not row.named
    share = min(done / images, 1.0) if images else 0.0
    return Forecast(
        clusters_to_name=name,
        answers=answers,
        images=round(min(done, images)),
        share=share,
        basis=basis,
        clusters_left=left,
        summary=forecast_summary(
            name, answers, share, min_purity, basis, left if share < target else 0
        ),
    )
