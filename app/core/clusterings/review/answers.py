"""Answers of people: stored, and applied to the clustering if they name another cluster."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import (
    Exclude,
    Move,
    apply_operation,
    check_revision,
    lock_clustering,
)
from app.core.clusterings.review.bands import band_of, read_edges
from app.core.clusterings.review.queries import active_clusters, read_lineage
from app.core.clusterings.rows import get_clustering
from app.core.platform.clock import db_now
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.tables import EXCLUDED, Assignment, Clustering, Review

AnswerKind = Literal["yes", "no", "which", "none"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    image_id: str
    cluster_id: int  # that the person was asked about
    answer: AnswerKind
    belongs_to: int | None = None  # with `which`
    sample: bool = False  # as in the question

    @property
    def said(self) -> int | None:
        """What is stored as `belongs_to`."""
        found = {"yes": self.cluster_id, "no": None, "which": self.belongs_to, "none": EXCLUDED}
        return found[self.answer]


def kind_of(cluster_id: int, said: int | None) -> AnswerKind:
    """The answer that is stored as `belongs_to` of a question about the cluster."""
    if said is None:
        return "no"
    if said == EXCLUDED:
        return "none"
    return "yes" if said == cluster_id else "which"


class Refused(NamedTuple):
    """An answer about a cluster that the image is not in any more."""

    image_id: str
    cluster_id: int | None  # of the image now; None: excluded


@dataclass(frozen=True, kw_only=True)
class Answered:
    revision: int
    stored: list[str]
    refused: list[Refused]


def store_answers(
    session: Session,
    tenant: str,
    clustering_id: str,
    answers: Sequence[Answer],
    *,
    revisions: Collection[int] | None = None,
    reviewed_by: str | None = None,
) -> Answered:
    """One transaction. An answer that is sent again changes nothing; a later one replaces it. An
    image that was moved since the question is left alone."""
    clustering = lock_clustering(session, get_clustering(session, tenant, clustering_id))
    check_revision(clustering, revisions)
    lineage = read_lineage(session, clustering_id)
    _check(session, clustering, answers)
    places = _places(session, clustering_id, [one.image_id for one in answers])
    before = _stored(session, clustering_id, list(places))
    edges = read_edges(session, clustering) if any(one.sample for one in answers) else []
    stored, refused = [], []
    moves: dict[int, list[str]] = {}
    for one in answers:
        current, probability = places[one.image_id]
        asked, said = lineage.now(one.cluster_id), one.said
        if current not in (asked, said):
            shown = None if current == EXCLUDED else current
            refused.append(Refused(one.image_id, shown))
            continue
        stratum = band_of(edges, probability) if one.sample else None
        _store(session, clustering_id, one, stratum, before.get(one.image_id), reviewed_by)
        stored.append(one.image_id)
        if one.answer in ("which", "none") and said is not None and current != said:
            moves.setdefault(said, []).append(one.image_id)
    session.flush()
    _move(session, clustering, moves, reviewed_by)
    return Answered(revision=clustering.revision, stored=stored, refused=refused)


def withdraw_answer(
    session: Session,
    tenant: str,
    clustering_id: str,
    image_id: str,
    *,
    revisions: Collection[int] | None = None,
    withdrawn_by: str | None = None,
) -> Clustering:
    """Deletes an answer, and moves the image back if the answer has moved it."""
    clustering = lock_clustering(session, get_clustering(session, tenant, clustering_id))
    check_revision(clustering, revisions)
    row = session.get(Review, (clustering_id, image_id))
    if row is None:
        raise NotFound(f"There is no answer about the image {image_id}.")
    lineage = read_lineage(session, clustering_id)
    asked = lineage.now(row.cluster_id)
    said = None if row.belongs_to is None else lineage.now(row.belongs_to)
    places = _places(session, clustering_id, [image_id])
    active = {cluster.cluster_id for cluster in active_clusters(session, clustering_id)}
    session.delete(row)
    session.flush()
    if said is not None and said != asked and places[image_id][0] == said and asked in active:
        back = Move(image_ids=[image_id], cluster_id=asked, withdrawal=True)
        apply_operation(session, tenant, clustering.id, back, created_by=withdrawn_by)
    return clustering


def _check(session: Session, clustering: Clustering, answers: Sequence[Answer]) -> None:
    ids = [one.image_id for one in answers]
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise InvalidRequest.field("answers", f"names the image {twice} twice")
    active = {cluster.cluster_id for cluster in active_clusters(session, clustering.id)}
    for number, one in enumerate(answers):
        if one.answer != "which":
            continue
        if one.belongs_to not in active:
            raise InvalidRequest.field(
                f"answers.{number}.belongs_to", f"there is no cluster {one.belongs_to}"
            )
        if one.belongs_to == one.cluster_id:
            raise InvalidRequest.field(
                f"answers.{number}.belongs_to",
                "is the cluster that was asked about; answer yes instead",
            )


def _places(
    session: Session, clustering_id: str, image_ids: Sequence[str]
) -> dict[str, tuple[int, float]]:
    """Cluster and probability of each image; raises InvalidRequest for one that has none."""
    rows = session.execute(
        select(Assignment.image_id, Assignment.cluster_id, Assignment.probability).where(
            Assignment.clustering_id == clustering_id, Assignment.image_id.in_(image_ids)
        )
    )
    found = {image_id: (number, probability) for image_id, number, probability in rows}
    missing = next((image_id for image_id in image_ids if image_id not in found), None)
    if missing is not None:
        raise InvalidRequest.field("answers", f"{missing} is not in this clustering")
    return found


def _stored(session: Session, clustering_id: str, image_ids: Sequence[str]) -> dict[str, Review]:
    rows = session.scalars(
        select(Review).where(Review.clustering_id == clustering_id, Review.image_id.in_(image_ids))
    )
    return {row.image_id: row for row in rows}


def _store(
    session: Session,
    clustering_id: str,
    answer: Answer,
    stratum: int | None,
    before: Review | None,
    reviewed_by: str | None,
) -> None:
    if before is None:
        before = Review(clustering_id=clustering_id, image_id=answer.image_id)
        session.add(before)
    elif before.cluster_id == answer.cluster_id:
        if before.belongs_to == answer.said:
            return
        stratum = before.stratum if stratum is None else stratum  # a correction of a sampled image
    before.cluster_id, before.belongs_to = answer.cluster_id, answer.said
    before.stratum, before.reviewed_by = stratum, reviewed_by
    before.reviewed_at = db_now()


def _move(
    session: Session, clustering: Clustering, moves: dict[int, list[str]], created_by: str | None
) -> None:
    """One revision for each target."""
    for target, image_ids in sorted(moves.items()):
        excluded = target == EXCLUDED
        operation = (
            Exclude(image_ids=image_ids)
            if excluded
            else Move(image_ids=image_ids, cluster_id=target)
        )
        apply_operation(session, clustering.tenant, clustering.id, operation, created_by=created_by)
