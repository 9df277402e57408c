"""Compares two versions of a model: configuration, metrics, cluster names and assignments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Integer, func, select
from sqlalchemy.orm import Session, aliased

from app.core.clusterings.agreement import Overlap
from app.core.clusterings.names import current_clusters
from app.core.datasets.rows import get_dataset
from app.core.platform.errors import InvalidRequest, NotPredicted
from app.core.platform.tables import (
    ABSENT,
    Assignment,
    AssignmentChange,
    Clustering,
    Model,
    ModelVersion,
)

_MAX_MOVEMENTS = 50
_SHOWN_ELSEWHERE = ("clusters", "metrics", "model")


@dataclass(frozen=True, kw_only=True)
class Difference:
    path: str  # `config.n_heads`
    left: Any  # None if that version has no such entry
    right: Any


@dataclass(frozen=True, kw_only=True)
class Movement:
    """Images of a left cluster that are not in the right cluster that matches it best."""

    left_cluster_id: int
    left_label: str
    right_cluster_id: int
    right_label: str
    images: int


@dataclass(frozen=True, kw_only=True)
class Agreement:
    dataset_id: str
    left_clustering_id: str
    right_clustering_id: str
    images: int  # in both; the scores are None if there are none
    same_cluster: float | None
    adjusted_rand_index: float | None
    normalized_mutual_information: float | None
    movements: list[Movement]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    name: str
    left: int
    right: int
    configuration: list[Difference]  # only differences
    metrics: list[Difference]  # all, also equal ones
    cluster_names: list[Difference]  # only differences; the path is the cluster's number
    assignments: Agreement


def compare(
    session: Session,
    model: Model,
    left: ModelVersion,
    right: ModelVersion,
    dataset_id: str | None = None,
) -> Comparison:
    clusterings = _choose(session, model, left, right, dataset_id)
    names = current_clusters(session, left).names, current_clusters(session, right).names
    return Comparison(
        name=model.name,
        left=left.version,
        right=right.version,
        configuration=_differing(_settings(left), _settings(right)),
        metrics=_side_by_side(_scores(left), _scores(right)),
        cluster_names=_differing(*({str(i): n for i, n in enumerate(side)} for side in names)),
        assignments=_agreement(session, *clusterings, *names),
    )


def _settings(version: ModelVersion) -> dict[str, Any]:
    return {
        path: value
        for path, value in _leaves(version.manifest)
        if path.partition(".")[0] not in _SHOWN_ELSEWHERE
    }


def _scores(version: ModelVersion) -> dict[str, Any]:
    return {
        path: value
        for path, value in _leaves(version.manifest.get("metrics", {}))
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _side_by_side(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[Difference]:
    paths = dict.fromkeys([*left, *right])
    return [Difference(path=p, left=left.get(p), right=right.get(p)) for p in paths]


def _differing(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[Difference]:
    return [each for each in _side_by_side(left, right) if each.left != each.right]


def _choose(
    session: Session,
    model: Model,
    left: ModelVersion,
    right: ModelVersion,
    dataset_id: str | None,
) -> tuple[Clustering, Clustering]:
    """The newest clustering of each version on the dataset."""
    of_left, of_right = (_newest(session, model, version) for version in (left, right))
    if dataset_id is None:
        common = [each for each in of_left if each in of_right]
        if len(common) > 1:
            raise InvalidRequest.field(
                "dataset_id", f"both versions have a clustering of {', '.join(common)}; choose one"
            )
        dataset_id = common[0] if common else next(iter([*of_left, *of_right]), None)
    else:
        get_dataset(session, model.tenant, dataset_id)
    for version, found in ((left, of_left), (right, of_right)):
        if dataset_id is None or dataset_id not in found:
            raise _not_predicted(model.name, version.version, dataset_id)
    assert dataset_id is not None
    return of_left[dataset_id], of_right[dataset_id]


def _newest(session: Session, model: Model, version: ModelVersion) -> dict[str, Clustering]:
    """The newest clustering of each dataset, newest first."""
    rows = session.scalars(
        select(Clustering)
        .where(
            Clustering.tenant == model.tenant,
            Clustering.model_name == model.name,
            Clustering.model_version == version.version,
        )
        .order_by(Clustering.id.desc())
    )
    found: dict[str, Clustering] = {}
    for row in rows:
        found.setdefault(row.dataset_id, row)
    return found


def _not_predicted(name: str, version: int, dataset_id: str | None) -> NotPredicted:
    example = dataset_id or "ds_..."
    body = f'"kind": "predict", "model": "{name}/versions/{version}"'
    return NotPredicted(
        f"Version {version} has no clustering of {dataset_id or 'any dataset'}; create one with "
        f'POST /v1/jobs {{{body}, "dataset_id": "{example}"}}.'
    )


def _agreement(
    session: Session,
    left: Clustering,
    right: Clustering,
    left_names: list[str],
    right_names: list[str],
) -> Agreement:
    overlap = _overlap(session, left, right)
    total = overlap.total
    matched = overlap.matched() if total else np.zeros(0, dtype=bool)
    moved = np.flatnonzero(~matched)
    order = np.lexsort((overlap.right[moved], overlap.left[moved], -overlap.count[moved]))
    pairs = [
        (int(overlap.left[i]), int(overlap.right[i]), int(overlap.count[i]))
        for i in moved[order][:_MAX_MOVEMENTS]
    ]
    return Agreement(
        dataset_id=left.dataset_id,
        left_clustering_id=left.id,
        right_clustering_id=right.id,
        images=total,
        same_cluster=int(overlap.count[matched].sum()) / total if total else None,
        adjusted_rand_index=overlap.adjusted_rand_index() if total else None,
        normalized_mutual_information=overlap.normalized_mutual_information() if total else None,
        movements=[
            Movement(
                left_cluster_id=a,
                left_label=left_names[a],
                right_cluster_id=b,
                right_label=right_names[b],
                images=count,
            )
            for a, b, count in pairs
        ],
    )


def _overlap(session: Session, left: Clustering, right: Clustering) -> Overlap:
    """Counted by the database: returns one row per pair of clusters, not per image."""
    of_left, of_right = aliased(Assignment), aliased(Assignment)
    clusters = (
        select(
            _initial_cluster(left, of_left).label("left"),
            _initial_cluster(right, of_right).label("right"),
        )
        .join_from(of_left, of_right, of_right.image_id == of_left.image_id)
        .where(of_left.clustering_id == left.id, of_right.clustering_id == right.id)
        .subquery()
    )
    pair = (clusters.c.left, clusters.c.right)
    both = (clusters.c.left != ABSENT, clusters.c.right != ABSENT)  # not added since
    query = select(*pair, func.count()).where(*both).group_by(*pair).order_by(*pair)
    rows = session.execute(query).all()
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Overlap(*columns)


def _initial_cluster(clustering: Clustering, assignment: type[Assignment]) -> ColumnElement[int]:
    """The cluster that the model assigned, before any operations."""
    if clustering.revision == 1:
        return assignment.cluster_id.expression
    first = (
        select(AssignmentChange.before)
        .where(
            AssignmentChange.clustering_id == assignment.clustering_id,
            AssignmentChange.image_id == assignment.image_id,
        )
        .order_by(AssignmentChange.revision)
        .limit(1)
        .scalar_subquery()
    )
    return func.coalesce(first, assignment.cluster_id, type_=Integer)
