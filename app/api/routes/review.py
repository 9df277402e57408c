"""The review of a clustering: what to look at, answers, purity and forecast."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Response

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ActorDep, RuntimeDep, SessionDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.routes.clusterings import ClusteringDep
from app.api.routes.operations import parse_revisions
from app.core.clusterings.review import answers, queries, queue, report
from app.core.clusterings.review.collection_planning import TARGET
from app.core.clusterings.review.collection_report import PROOF, Proof
from app.core.clusterings.review.planning import MIN_PURITY
from app.core.clusterings.review.purity import CONFIDENCE
from app.core.platform.tables import Review

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/clusterings/{clustering_id}/review",
    tags=["clusterings"],
    responses=responses(401, 404, 422, 503),
)
ClusteringId = Annotated[str, Path(max_length=40)]
MinPurity = Annotated[float, Query(ge=0.5, lt=1, description="The purity to prove.")]
Confidence = Annotated[float, Query(ge=0.5, le=0.999, description="Level of the intervals.")]
ProofQuery = Annotated[
    Proof,
    Query(
        description="`groups`: each cluster by itself; `collection`: the labels as a whole, which "
        "needs far fewer answers, but single clusters may be less pure."
    ),
]
Target = Annotated[
    float, Query(gt=0, le=1, description="Share of the collection that is to be finished.")
]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=300,
        description="The `ETag` of the clustering. By default any revision: each answer names the "
        "cluster that was seen, and is refused if the image was moved since.",
    ),
]
_TAG = {"ETag": {"schema": {"type": "string"}, "description": "The revision."}}


@router.get("", summary="Read the purity of the clusters and the forecast")
def read_review(
    session: SessionDep,
    clustering: ClusteringDep,
    min_purity: MinPurity = MIN_PURITY,
    confidence: Confidence = CONFIDENCE,
    target: Target = TARGET,
    proof: ProofQuery = PROOF,
) -> schemas.ReviewReport:
    """The purity of a cluster is the share of its images that belong to it. Reviewed images are
    counted, the others are estimated from the answers to random images of the cluster. An image
    that was found to be wrong counts until it is moved or excluded."""
    found = report.read_report(
        session,
        clustering,
        min_purity=min_purity,
        confidence=confidence,
        target=target,
        proof=proof,
    )
    return schemas.ReviewReport.of(found)


@router.get("/queue", summary="Read the images to review next")
def read_review_queue(
    session: SessionDep,
    clustering: ClusteringDep,
    limit: Annotated[int, Query(ge=1, le=500, description="Number of images.")] = 50,
    order: Annotated[
        Literal["sample", "gain"] | None,
        Query(
            description="`sample`: only the random sample of each cluster; `gain`: only the least "
            "sure images of the clusters that are nearest to `min_purity`. By default both, the "
            "sample first."
        ),
    ] = None,
    labeler: Annotated[
        str | None,
        Query(
            max_length=64,
            description="A name of your choice. Labelers with different names begin with different "
            "clusters.",
        ),
    ] = None,
    min_purity: MinPurity = MIN_PURITY,
    confidence: Confidence = CONFIDENCE,
    target: Target = TARGET,
    proof: ProofQuery = PROOF,
) -> schemas.ReviewQueue:
    """The fewest images that are expected to prove the purity of each cluster. Reviewed images are
    not asked again. The same for the same answers and revision; ask again after some answers."""
    found = queue.read_queue(
        session,
        clustering,
        limit=limit,
        order=order,
        labeler=labeler,
        min_purity=min_purity,
        confidence=confidence,
        target=target,
        proof=proof,
    )
    return schemas.ReviewQueue.of(found)


@router.get(
    "/answers", response_model=schemas.Page[schemas.ReviewAnswer], summary="List the answers"
)
def list_answers(listing: ListingDep, clustering: ClusteringDep) -> dict[str, Any]:
    """The latest one about each image, in the order of the upload."""
    query = queries.select_answers(clustering)
    return listing.page(query, Review.image_id, schemas.ReviewAnswer.of)


@router.post(
    "/answers",
    responses={200: {"description": "Stored", "headers": _TAG}, **responses(412)},
    summary="Answer questions of the review",
)
def create_answers(
    body: schemas.AnswersCreate,
    response: Response,
    runtime: RuntimeDep,
    actor: ActorDep,
    clustering_id: ClusteringId,
    if_match: IfMatch = None,
) -> schemas.StoredAnswers:
    """One transaction. Sending an answer again changes nothing, a different one replaces it. If two
    people answer about one image, the later answer counts, unless the earlier one has moved it."""
    with runtime.db.write() as session:
        found = answers.store_answers(
            session,
            actor.tenant,
            clustering_id,
            body.to_core(),
            revisions=parse_revisions(if_match or "*"),
            reviewed_by=actor.key_name,
        )
    response.headers["ETag"] = f'"{found.revision}"'
    return schemas.StoredAnswers.of(found)


@router.delete(
    "/answers/{image_id}",
    status_code=204,
    responses={204: {"description": "Withdrawn", "headers": _TAG}, **responses(412)},
    summary="Withdraw an answer",
)
def delete_answer(
    response: Response,
    runtime: RuntimeDep,
    actor: ActorDep,
    clustering_id: ClusteringId,
    image_id: Annotated[str, Path(max_length=40)],
    if_match: IfMatch = None,
) -> None:
    """If the answer has moved or excluded the image, it is moved back."""
    with runtime.db.write() as session:
        clustering = answers.withdraw_answer(
            session,
            actor.tenant,
            clustering_id,
            image_id,
            revisions=parse_revisions(if_match or "*"),
            withdrawn_by=actor.key_name,
        )
    response.headers["ETag"] = f'"{clustering.revision}"'
