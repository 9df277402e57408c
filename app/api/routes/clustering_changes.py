"""What changed from one clustering of a dataset to another, and its adoption."""

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import (
    ActorDep,
    IdempotencyKeyHeader,
    ResolverDep,
    RuntimeDep,
    SessionDep,
    TenantDep,
)
from app.api.http.errors import responses
from app.api.routes.clusterings import ClusteringId, ClusterNumber
from app.api.routes.operations import CREATED, IfMatchHeader, parse_revisions
from app.core.clusterings import operations, retraining
from app.core.clusterings.current import set_current
from app.core.clusterings.rows import get_clustering
from app.core.datasets.rows import get_dataset
from app.core.models import registry
from app.core.platform import idempotency
from app.core.platform.actor import Actor
from app.core.runtime import Runtime
from app.core.serving.resolver import ModelResolver

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/clusterings/{clustering_id}",
    tags=["clusterings"],
    responses=responses(401, 404, 422, 503),
)
Since = Annotated[str, Query(max_length=40, description="The old clustering of the dataset.")]


@router.get("/changes", summary="Read what changed since another clustering")
def read_changes(
    session: SessionDep, tenant: TenantDep, clustering_id: ClusteringId, since: Since
) -> schemas.Changes:
    """What becomes of each group of `since`, by the images that both have: kept, split, merged or
    vanished, and which clusters appeared. Changes nothing."""
    return schemas.Changes.of(retraining.read_changes(session, tenant, clustering_id, since))


@router.get("/changes/{cluster_id}/images", summary="Read example images of a change")
def read_changed_images(
    session: SessionDep,
    tenant: TenantDep,
    clustering_id: ClusteringId,
    cluster_id: ClusterNumber,
    since: Since,
    into: Annotated[
        list[Annotated[int, Query(ge=0, lt=2**31)]],
        Query(max_length=1000, description="The new clusters that the group goes to."),
    ] = [],  # noqa: B006 - FastAPI copies it
    limit: Annotated[int, Query(ge=1, le=24, description="Number of images of each kind.")] = 8,
) -> schemas.ChangedImages:
    """Of a group of `since`: images that stayed in the clusters `into`, that left for others, and
    that came to them."""
    found = retraining.read_changed_images(
        session, tenant, clustering_id, since, group=cluster_id, into=into, limit=limit
    )
    return schemas.ChangedImages.of(found)


@router.post(
    ":adopt",
    status_code=201,
    responses={201: CREATED, **responses(409, 412, 428, 429)},
    summary="Take over names and edits of another clustering",
)
def adopt_clustering(
    body: schemas.AdoptionCreate,
    response: Response,
    runtime: RuntimeDep,
    resolver: ResolverDep,
    actor: ActorDep,
    clustering_id: ClusteringId,
    if_match: IfMatchHeader = None,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.AppliedOperation:
    """One operation of kind `adopt`, which `undo` reverts. Names go with the images; cluster ids
    do not, and `arguments.groups` has the new one of each group. An approved group becomes what
    the new clustering made of it; a rejected one keeps the images that it had. Images that a
    person has moved, excluded or confirmed stay where the person put them, unless their group was
    approved to end. `make_current` and `alias` move in the same transaction. 409 `not_predicted`
    if the clustering lacks images that `since` has."""
    revisions = parse_revisions(if_match)
    with idempotency.in_flight(actor.tenant, idempotency_key):
        done = _adopt(runtime, resolver, actor, clustering_id, revisions, idempotency_key, body)
    response.headers["ETag"] = f'"{done.revision}"'
    return done


def _adopt(
    runtime: Runtime,
    resolver: ModelResolver,
    actor: Actor,
    clustering_id: str,
    revisions: frozenset[int] | None,
    key: str | None,
    body: schemas.AdoptionCreate,
) -> schemas.AppliedOperation:
    with runtime.db.read() as session:
        new = get_clustering(session, actor.tenant, clustering_id)
    if body.alias is not None:
        registry.check_alias(body.alias)
        resolver.prepare(actor.tenant, f"{new.model_name}/versions/{new.model_version}")

    # Takes seconds: not inside of a transaction.
    plan = retraining.plan_adoption(
        runtime.db,
        actor.tenant,
        clustering_id,
        body.since,
        {each.cluster_id: each.decision for each in body.decisions},
    )

    def create(session: Session) -> dict[str, Any]:
        dataset = get_dataset(session, actor.tenant, new.dataset_id, lock=True)
        row = retraining.apply_adoption(
            session,
            plan,
            revisions=revisions,
            since_revision=body.since_revision,
            created_by=actor.key_name,
        )
        adopted = get_clustering(session, actor.tenant, clustering_id)
        if body.make_current:
            set_current(session, dataset, adopted, changed_by=actor.key_name)
        if body.alias is not None:
            model = registry.get_model(session, actor.tenant, new.model_name, lock=True)
            version = new.model_version
            registry.set_alias(session, model, body.alias, version, changed_by=actor.key_name)
        same = operations.same_names(session, row)
        return schemas.AppliedOperation.applied(row, same).model_dump(mode="json")

    content = f"adopt {clustering_id} {body.model_dump_json()}"
    request_hash = hashlib.sha256(content.encode()).hexdigest()
    answer, _ = idempotency.answer_once(runtime.db, actor.tenant, key, request_hash, create)
    resolver.invalidate(actor.tenant, new.model_name)
    return schemas.AppliedOperation.model_validate(answer)
