"""Images that a dataset has more than once."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy import or_, select
from sqlalchemy.orm import aliased

from app.api.http.access import GuardedRoute
from app.api.http.dependencies import ListingDep
from app.api.http.errors import responses
from app.api.routes.datasets import DatasetDep
from app.api.schemas.common import Page
from app.api.schemas.duplicates import Duplicate as ShownDuplicate
from app.api.schemas.duplicates import DuplicateKind
from app.core.platform.tables import Duplicate, Image

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/datasets",
    tags=["datasets"],
    responses=responses(401, 422, 503),
)


@router.get(
    "/{dataset_id}/duplicates",
    response_model=Page[ShownDuplicate],
    responses=responses(404, 422),
    summary="List images that show what an earlier one shows",
)
def list_duplicates(
    listing: ListingDep,
    dataset: DatasetDep,
    kind: Annotated[DuplicateKind | None, Query(description="By default both.")] = None,
) -> dict[str, Any]:
    """Exact duplicates are known from the upload on, near ones from the first job that has
    compared the images."""
    exact = aliased(Duplicate)
    # Looked up one by one: a join would let the database walk all images up to the page.
    image = Image.id == Duplicate.image_id
    names = (
        select(Image.name).where(which).scalar_subquery()
        for which in (image, Image.id == Duplicate.original_id)
    )
    position = select(Image.position).where(image).scalar_subquery()
    query = select(Duplicate, *names).where(
        Duplicate.dataset_id == dataset.id, position < dataset.end_position
    )
    if kind is not None:
        query = query.where(Duplicate.kind == kind)
    else:  # once each: pages go by image
        is_exact = select(exact.image_id).where(
            exact.image_id == Duplicate.image_id, exact.kind == "exact"
        )
        query = query.where(or_(Duplicate.kind == "exact", ~is_exact.exists()))
    return listing.page(query, Duplicate.image_id, ShownDuplicate.of)
