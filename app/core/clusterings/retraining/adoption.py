"""The new clustering takes over names, edits and rejected groups of the old one: one operation.

It is planned at a revision of each clustering, without a lock, and applied if both are still at
that revision.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from app.core.clusterings.agreement import Integers
from app.core.clusterings.members import Ids
from app.core.clusterings.operations import check_revision, lock_clustering
from app.core.clusterings.operations.editor import ClusteringEditor
from app.core.clusterings.retraining.by_hand import placed_by_hand
from app.core.clusterings.retraining.carried_reviews import carry_reviews
from app.core.clusterings.retraining.decisions import Images, Outcome, decide
from app.core.clusterings.retraining.pair import Decision, Pair, count_missing, get_both, read_pair
from app.core.platform.db import Database
from app.core.platform.errors import NotPredicted, RevisionStale
from app.core.platform.tables import ABSENT, Assignment, ClusteringOperation

_FETCH_ROWS = 10_000
_ROW = np.dtype([("id", "S40"), ("old", np.int64), ("new", np.int64)])


@dataclass(frozen=True, kw_only=True)
class AdoptionPlan:
    outcome: Outcome
    revisions: tuple[int, int]  # of the old and the new clustering
    moves: dict[int, Ids]  # images that get another cluster, by that cluster
    said: Ids  # images that are where a person has placed them


def plan_adoption(
    db: Database,
    tenant: str,
    clustering_id: str,
    since: str,
    decisions: Mapping[int, Decision],
) -> AdoptionPlan:
    """Takes seconds for a million images."""
    with db.read() as session:
        pair = read_pair(session, tenant, clustering_id, since)
        outcome = decide(pair, decisions)
        missing = count_missing(session, pair)
        if missing:
            raise _images_missing(pair, missing)
        images = _read_images(session, pair)
    place, said = outcome.place(images)
    return AdoptionPlan(
        outcome=outcome,
        revisions=(pair.old.revision, pair.new.revision),
        moves=_by_cluster(images.ids, images.new, place),
        said=images.ids[said],
    )


def apply_adoption(
    session: Session,
    plan: AdoptionPlan,
    *,
    revisions: Collection[int] | None,
    since_revision: int | None,
    created_by: str | None,
) -> ClusteringOperation:
    """One revision of the new clustering; the old one stays as it is. `revisions` and
    `since_revision`: those that the caller has read, of the new and the old one; None: any."""
    pair = plan.outcome.pair
    both = get_both(session, pair.new.tenant, pair.new.id, pair.old.id)
    for clustering in sorted(both, key=lambda each: each.id):
        lock_clustering(session, clustering)
    old, new = both
    check_revision(new, revisions)
    check_revision(old, None if since_revision is None else {since_revision})
    if (old.revision, new.revision) != plan.revisions:
        raise RevisionStale("A clustering was changed while the adoption was computed; retry.")
    editor = ClusteringEditor(session, new)
    _change_clusters(editor, plan.outcome)
    for number, ids in plan.moves.items():
        editor.move_images([image_id.decode() for image_id in ids], number)
    operation = editor.finish("adopt", _arguments(plan.outcome), created_by=created_by)
    carry_reviews(session, old, new, plan.said, plan.outcome)
    return operation


def _change_clusters(editor: ClusteringEditor, outcome: Outcome) -> None:
    labels = outcome.labels()
    for number in outcome.created:
        label, named = labels.pop(number)
        editor.add_cluster(label, named=named)  # gets this number: the revision is that of the plan
    for cluster in editor.clusters("decisions", sorted(labels)):
        label, named = labels[cluster.cluster_id]
        editor.change(cluster, label=label, named=named, active=True)
    for cluster in editor.clusters("decisions", sorted(outcome.merges)):
        editor.change(cluster, active=False)


def _arguments(outcome: Outcome) -> dict[str, Any]:
    """What the history says; `merges` and `splits` also place images that are added later."""
    pair = outcome.pair
    given = {label for label, named in outcome.labels().values() if named}
    merged: dict[int, list[int]] = {}
    for number, into in sorted(outcome.merges.items()):
        merged.setdefault(into, [into]).append(number)
    made: dict[int, list[int]] = {}
    for number, group in outcome.created.items():
        source = pair.transitions.merged_into(group)
        if source is not None:
            made.setdefault(outcome.final(source), []).append(number)
    names = [pair.groups[group].label for group in outcome.ended if pair.groups[group].named]
    return {
        "since": pair.old.id,
        "since_revision": pair.old.revision,
        "groups": [[group, home] for group, home in sorted(outcome.homes.items())],
        "rejected": sorted(outcome.rejected),
        "ended": outcome.ended,
        "dropped_names": sorted(set(names) - given),
        "merges": [{"cluster_ids": ids, "into": into} for into, ids in merged.items()],
        "splits": [{"cluster_id": number, "new": new} for number, new in sorted(made.items())],
    }


def _read_images(session: Session, pair: Pair) -> Images:
    of_old, of_new = aliased(Assignment), aliased(Assignment)
    found = session.execute(
        select(of_new.image_id, func.coalesce(of_old.cluster_id, ABSENT), of_new.cluster_id)
        .outerjoin(
            of_old, (of_old.image_id == of_new.image_id) & (of_old.clustering_id == pair.old.id)
        )
        .where(of_new.clustering_id == pair.new.id)
        .order_by(of_new.image_id)
        .execution_options(yield_per=_FETCH_ROWS)
    )
    pages = [np.empty(0, _ROW)]
    pages += [np.array([tuple(row) for row in rows], _ROW) for rows in found.partitions()]
    images = np.concatenate(pages)
    ids = images["id"]
    return Images(
        ids=ids,
        old=images["old"],
        new=images["new"],
        by_hand=np.isin(ids, placed_by_hand(session, pair.old)),
        by_hand_since=np.isin(ids, placed_by_hand(session, pair.new)),
    )


def _by_cluster(ids: Ids, before: Integers, after: Integers) -> dict[int, Ids]:
    changed = np.flatnonzero(before != after)
    changed = changed[np.argsort(after[changed], kind="stable")]
    numbers, starts = np.unique(after[changed], return_index=True)
    parts = np.split(ids[changed], starts[1:]) if len(numbers) else []
    return {int(number): part for number, part in zip(numbers, parts, strict=True)}


def _images_missing(pair: Pair, count: int) -> NotPredicted:
    model = f"{pair.new.model_name}/versions/{pair.new.model_version}"
    return NotPredicted(
        f"{pair.new.id} lacks {count} images that {pair.old.id} has; add them first with "
        f'POST /v1/jobs {{"kind": "predict", "model": "{model}", '
        f'"dataset_id": "{pair.new.dataset_id}"}}.'
    )
