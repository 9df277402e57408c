"""Edits of a clustering: an append-only list of operations, each of which creates a revision."""

import hashlib
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ActorDep, IdempotencyKeyHeader, RuntimeDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.routes.clusterings import ClusteringDep
from app.core.clusterings import operations
from app.core.clusterings.queries import select_operations
from app.core.clusterings.splitting import plan_split
from app.core.platform import idempotency
from app.core.platform.actor import Actor
from app.core.platform.errors import InvalidRequest, RevisionRequired
from app.core.platform.tables import ClusteringOperation
from app.core.runtime import Runtime

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/clusterings/{clustering_id}/operations",
    tags=["clusterings"],
    responses=responses(401, 404, 422, 503),
)
IfMatchHeader = Annotated[
    str | None,
    Header(
        max_length=300,
        description='Required: the `ETag` of the clustering that you have read, such as `"3"`, '
        "or `*` for any revision.",
    ),
]
_TAG = r'(?:W/)?"([^"]*)"'
_TAGS = re.compile(rf"\s*{_TAG}(?:\s*,\s*{_TAG})*\s*")
CREATED = {
    "description": "The operation",
    "headers": {"ETag": {"schema": {"type": "string"}, "description": "The new revision."}},
}


@router.get(
    "",
    response_model=schemas.Page[schemas.Operation],
    summary="List the operations on a clustering, newest first",
)
def list_operations(listing: ListingDep, clustering: ClusteringDep) -> dict[str, Any]:
    """Each has the revision that it created, and which operation has undone it."""
    query = select_operations(clustering)
    key = ClusteringOperation.revision
    return listing.page(query, key, schemas.Operation.of, descending=True)


@router.post(
    "",
    status_code=201,
    responses={201: CREATED, **responses(409, 412, 428, 429)},
    summary="Edit a clustering",
)
def create_operation(
    body: schemas.OperationCreate,
    response: Response,
    runtime: RuntimeDep,
    actor: ActorDep,
    clustering_id: Annotated[str, Path(max_length=40)],
    if_match: IfMatchHeader = None,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.AppliedOperation:
    """Renames, merges or splits clusters, moves or excludes images, undoes the newest operation, or
    does an undone one again. 412 if the clustering was edited since the revision in `If-Match`.
    `warnings` lists clusters that have the same name now: an export has one class for them."""
    revisions = parse_revisions(if_match)
    with idempotency.in_flight(actor.tenant, idempotency_key):
        operation = _perform(runtime, actor, clustering_id, revisions, idempotency_key, body)
    response.headers["ETag"] = f'"{operation.revision}"'
    return operation


def parse_revisions(if_match: str | None) -> frozenset[int] | None:
    """Returns None for `*`. A weak tag counts: a revision does not depend on the encoding."""
    if if_match is None:
        raise RevisionRequired('Send the ETag of the clustering, such as `If-Match: "3"`.')
    if if_match.strip() == "*":
        return None
    if not _TAGS.fullmatch(if_match):
        raise InvalidRequest.field(
            "If-Match", f'must be a revision in quotes, such as `"3"`, not `{if_match[:50]}`'
        )
    tags = re.findall(_TAG, if_match)
    return frozenset(int(tag) for tag in tags if re.fullmatch(r"[0-9]{1,9}", tag))


def _perform(
    runtime: Runtime,
    actor: Actor,
    clustering_id: str,
    revisions: frozenset[int] | None,
    key: str | None,
    body: schemas.OperationCreate,
) -> schemas.AppliedOperation:
    operation = _prepare(runtime, actor.tenant, clustering_id, revisions, body)
    # Without If-Match: a repeated request gets the response of the operation that was done.
    content = f"operations {clustering_id} {body.model_dump_json()}"
    request_hash = hashlib.sha256(content.encode()).hexdigest()

    def create(session: Session) -> dict[str, Any]:
        row = operations.apply_operation(
            session,
            actor.tenant,
            clustering_id,
            operation,
            revisions=revisions,
            created_by=actor.key_name,
        )
        same = operations.same_names(session, row)
        return schemas.AppliedOperation.applied(row, same).model_dump(mode="json")

    answer, _ = idempotency.answer_once(runtime.db, actor.tenant, key, request_hash, create)
    return schemas.AppliedOperation.model_validate(answer)


def _prepare(
    runtime: Runtime,
    tenant: str,
    clustering_id: str,
    revisions: frozenset[int] | None,
    body: schemas.OperationCreate,
) -> operations.Operation:
    arguments = body.model_dump(exclude={"kind"})
    if body.kind == "split":
        # Takes seconds: not inside of a transaction.
        arguments["plan"] = plan_split(
            runtime.db,
            runtime.storage,
            tenant,
            clustering_id,
            revisions=revisions,
            cluster_id=body.cluster_id,
            parts=body.parts,
            seed=body.seed,
        )
    if arguments.get("selection") is not None:
        arguments["selection"] = operations.Selection(**arguments["selection"])
    return operations.KINDS[body.kind](**arguments)
