"""The clustering that gives a dataset its labels: choose, roll back, and its history."""

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ActorDep, IdempotencyKeyHeader, RuntimeDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.routes.datasets import DatasetDep
from app.core.clusterings.current import rollback_current, select_changes, set_current
from app.core.clusterings.queries import find_clustering
from app.core.datasets.rows import get_dataset
from app.core.platform import idempotency
from app.core.platform.tables import CurrentClusteringChange

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/datasets/{dataset_id}/current-clustering",
    tags=["datasets"],
    responses=responses(401, 404, 422, 503),
)
DatasetId = Annotated[str, Path(max_length=40)]


@router.put("", summary="Choose the current clustering of a dataset")
def set_current_clustering(
    runtime: RuntimeDep,
    actor: ActorDep,
    dataset_id: DatasetId,
    body: schemas.CurrentClusteringUpdate,
) -> schemas.Dataset:
    """The labels of the dataset come from this clustering until another one is chosen. The first
    clustering of a dataset is current without a choice."""
    with runtime.db.write() as session:
        dataset = get_dataset(session, actor.tenant, dataset_id, lock=True)
        clustering = find_clustering(session, actor.tenant, dataset, body.clustering_id)
        set_current(session, dataset, clustering, changed_by=actor.key_name)
        session.refresh(dataset)
        return schemas.Dataset.of(dataset)


@router.post(
    ":rollback", responses=responses(409), summary="Roll back the current clustering of a dataset"
)
def rollback_current_clustering(
    runtime: RuntimeDep,
    actor: ActorDep,
    dataset_id: DatasetId,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.Dataset:
    """Undoes the last choice; a second rollback undoes the choice before it. Deleted clusterings
    are skipped; `nothing_to_roll_back` if none is left."""

    def roll_back(session: Session) -> dict[str, Any]:
        dataset = get_dataset(session, actor.tenant, dataset_id, lock=True)
        rollback_current(session, dataset, changed_by=actor.key_name)
        session.refresh(dataset)
        return schemas.Dataset.of(dataset).model_dump(mode="json")

    content = f"datasets/{dataset_id}/current-clustering:rollback"
    request_hash = hashlib.sha256(content.encode()).hexdigest()
    with idempotency.in_flight(actor.tenant, idempotency_key):
        answer, _ = idempotency.answer_once(
            runtime.db, actor.tenant, idempotency_key, request_hash, roll_back
        )
    return schemas.Dataset.model_validate(answer)


@router.get(
    "/history",
    response_model=schemas.Page[schemas.CurrentClusteringChange],
    summary="List the history of the current clustering, newest first",
)
def list_current_clustering_changes(listing: ListingDep, dataset: DatasetDep) -> dict[str, Any]:
    """Each change with its key, time and clusterings."""
    return listing.page(
        select_changes(dataset),
        CurrentClusteringChange.number,
        schemas.CurrentClusteringChange.of,
        descending=True,
    )
