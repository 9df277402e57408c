"""Groups that refused images are proposed to be: accept as a new group, add to one, or dismiss."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ActorDep, RuntimeDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.routes.models import ModelDep
from app.core.gathering import decisions, queries
from app.core.platform.tables import Model, Proposal

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1",
    tags=["models"],
    responses=responses(401, 404, 422, 503),
)
ProposalId = Annotated[
    str,
    Path(
        max_length=40,
        description="The id of a proposal.",
        examples=["prp_01k9z3m4q5r6s7t8v9w0x1y2z3"],
    ),
]


def load_proposal(session: SessionDep, tenant: TenantDep, proposal_id: ProposalId) -> Proposal:
    return queries.get_proposal(session, tenant, proposal_id)


@router.get(
    "/models/{name}/proposals",
    response_model=schemas.Page[schemas.Proposal],
    summary="List the proposed groups of a model, newest first",
)
def list_proposals(
    listing: ListingDep,
    session: SessionDep,
    model: ModelDep,
    status: Annotated[
        schemas.ProposalStatus, Query(description="Only those with this status.")
    ] = "open",
) -> dict[str, Any]:
    """Groups of similar images that the model has refused, of all its versions."""
    query = queries.select_proposals(model, status)
    return listing.page(
        query, Proposal.id, lambda row: _shown(session, row, model.name), descending=True
    )


@router.get("/proposals/{proposal_id}", summary="Read a proposed group")
def read_proposal(
    session: SessionDep, proposal: Annotated[Proposal, Depends(load_proposal)]
) -> schemas.Proposal:
    """Its size, its most typical images, and what was decided."""
    return _shown(session, proposal, session.get_one(Model, proposal.model_id).name)


@router.post(
    "/proposals/{proposal_id}:accept",
    responses=responses(409),
    summary="Accept a proposed group as a new group, or add it to one",
)
def accept_proposal(
    runtime: RuntimeDep, actor: ActorDep, proposal_id: ProposalId, body: schemas.ProposalAccept
) -> schemas.Proposal:
    """Adds its images to the dataset of the version's clustering and moves them to the group, as
    one revision that can be undone; the next training that learns from the clustering knows them.
    A predict job then computes their features. `dataset_in_use` while another job uses the dataset.
    A repeated request gets the same response; another decision gets `proposal_decided`."""
    target = decisions.Target(cluster_id=body.cluster_id, new_cluster=body.new_cluster)
    with runtime.db.write() as session:
        row = decisions.accept_proposal(
            session, actor.tenant, proposal_id, target, decided_by=actor.key_name
        )
        return schemas.Proposal.of(row, session.get_one(Model, row.model_id).name)


@router.post(
    "/proposals/{proposal_id}:dismiss", responses=responses(409), summary="Dismiss a proposed group"
)
def dismiss_proposal(
    runtime: RuntimeDep, actor: ActorDep, proposal_id: ProposalId
) -> schemas.Proposal:
    """Deletes its images. Images that are like them are not proposed again by this version. A
    repeated request gets the same response."""
    with runtime.db.write() as session:
        row = decisions.dismiss_proposal(
            session, actor.tenant, proposal_id, decided_by=actor.key_name
        )
        return schemas.Proposal.of(row, session.get_one(Model, row.model_id).name)


def _shown(session: SessionDep, row: Proposal, name: str) -> schemas.Proposal:
    if row.status != "open":
        return schemas.Proposal.of(row, name)
    images = queries.read_images(session, row.id, queries.EXAMPLES)
    return schemas.Proposal.of(row, name, queries.count_images(session, row.id), images)
