"""What is known of the labels as a whole, and what is left to review until it suffices."""

from dataclasses import dataclass
from math import floor
from typing import Literal, NamedTuple

from sqlalchemy.orm import Session

from app.core.clusterings.review.bands import ReviewState, read_state
from app.core.clusterings.review.collection import (
    Selection,
    best_selection,
    regions_of,
    selections_of,
)
from app.core.clusterings.review.collection_planning import (
    CollectionPlan,
    expected_purity,
    plan_collection,
)
from app.core.clusterings.review.order import Collection, band_start, read_collection
from app.core.clusterings.review.purity import CONFIDENCE
from app.core.platform.tables import Clustering

Basis = Literal["answers", "probabilities"]
Proof = Literal["collection", "groups"]
PROOF: Proof = "groups"
_WORTH = 0.9  # of the answers by hand; above it, the review saves hardly any


class CollectionReview(NamedTuple):
    """The labels that can be exported together: the best that are proven, or those planned."""

    images: int
    min_probability: float  # of those that people have not seen
    sampled: int  # random answers, without a gap in the order
    purity: float | None  # None if there are none
    lower: float | None  # None before a random answer
    upper: float | None
    basis: Basis  # of `purity`
    meets: bool  # the lower bound reaches the purity
    answers_left: int  # expected until the target is proven


@dataclass(frozen=True, kw_only=True)
class Forecast:
    clusters_to_name: int
    answers: int
    images: int
    share: float  # of the collection
    basis: Basis
    clusters_left: int  # that take about as many answers as they have images
    summary: str


class CollectionState(NamedTuple):
    review: CollectionReview
    finished: int
    forecast: Forecast
    plan: CollectionPlan | None  # None if the target is proven
    collection: Collection


def review_collection(
    session: Session,
    state: ReviewState,
    min_purity: float,
    confidence: float,
    target: float,
) -> CollectionState:
    found = read_collection(session, state)
    regions = regions_of(found.photos)
    selections = selections_of(regions, found.photos.confirmed, confidence)
    best = best_selection(selections, min_purity)
    finished = found.excluded + (best.images if best else found.photos.confirmed)
    plan = None
    if finished < target * found.images and not found.photos.seen.all():
        allowed = max(floor((1 - target) * found.images + 1e-9) - found.left, 0)
        plan = plan_collection(found.photos, allowed, min_purity=min_purity, confidence=confidence)
    shown = best or selections[plan.band if plan else 0]
    review = _review(found, shown, state.edges, best is not None, plan)
    unnamed = sum(bool(one.size) and not one.cluster.named for one in state.clusters)
    forecast = _forecast(found, review.basis, finished, unnamed, plan, min_purity, target)
    return CollectionState(review, finished, forecast, plan, found)


def proven_probability(session: Session, clustering: Clustering, min_purity: float) -> float | None:
    """The lowest probability of the unseen images that are proven to be pure enough together with
    the confirmed ones; None if none are."""
    state = read_state(session, clustering)
    found = read_collection(session, state)
    selections = selections_of(regions_of(found.photos), found.photos.confirmed, CONFIDENCE)
    best = best_selection(selections, min_purity)
    return None if best is None else band_start(state.edges, best.region.band)


def _review(
    found: Collection,
    shown: Selection,
    edges: list[float],
    meets: bool,
    plan: CollectionPlan | None,
) -> CollectionReview:
    known = shown.purity
    return CollectionReview(
        images=shown.images,
        min_probability=band_start(edges, shown.region.band),
        sampled=shown.region.drawn,
        purity=known.estimate if known else expected_purity(found.photos, shown.region.band),
        lower=known.lower if known else None,
        upper=known.upper if known else None,
        basis="answers" if known else "probabilities",
        meets=meets,
        answers_left=plan.answers if plan else 0,
    )


def _forecast(
    found: Collection,
    basis: Basis,
    finished: int,
    unnamed: int,
    plan: CollectionPlan | None,
    min_purity: float,
    target: float,
) -> Forecast:
    images = max(finished, found.excluded + plan.images) if plan else finished
    answers = plan.answers if plan else 0
    share = min(images / found.images, 1.0) if found.images else 0.0
    summary = forecast_summary(unnamed, answers, share, min_purity, basis, 0)
    if answers and answers >= _WORTH * (target * found.images - finished):
        summary += " The groups are too mixed to save answers: split them, or train again."
    return Forecast(
        clusters_to_name=unnamed,
        answers=answers,
        images=min(images, found.images),
        share=share,
        basis=basis,
        clusters_left=0,
        summary=summary,
    )


def forecast_summary(
    name: int, answers: int, share: float, min_purity: float, basis: Basis, left: int
) -> str:
    steps = []
    if name:
        steps.append(f"name {name:,} group{'' if name == 1 else 's'}")
    if answers:
        steps.append(f"review {answers:,} photo{'' if answers == 1 else 's'}")
    todo = f"{', '.join(steps)}: " if steps else ""
    text = f"{todo}{share:.0%} of the collection at {min_purity:.0%} purity or better"
    source = "" if basis == "answers" else ", if the model's probabilities are right"
    rest = f" {left:,} groups need an answer about nearly every photo." if left > 1 else ""
    rest = " 1 group needs an answer about nearly every photo." if left == 1 else rest
    return f"{text[0].upper()}{text[1:]}{source}.{rest}"
