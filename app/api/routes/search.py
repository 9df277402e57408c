"""`:search`: the images of a dataset that are most like a photo or a text."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.http.auth import ApiKeyAuth, AuthenticatedRoute
from app.api.http.body_limits import media_type_of
from app.api.http.dependencies import RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.multipart import read_files
from app.api.http.openapi_bodies import FORM, SEARCH_BODY
from app.api.http.validation import parse_json
from app.api.inference import PredictContext, PredictInputs, open_context
from app.core.clusterings.search import SearchSpace, Vector, open_space, search_space, stored_vector
from app.core.datasets.rows import get_image
from app.core.platform.errors import (
    BodyTooLarge,
    FeaturesMissing,
    ImageRejected,
    InvalidRequest,
    NotFound,
)
from app.core.platform.tables import Image
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/datasets",
    tags=["datasets"],
    responses=responses(401, 403, 404, 409, 413, 415, 422, 429, 503),
    dependencies=[Depends(ApiKeyAuth("read"))],
)


@router.post(
    "/{dataset_id}:search",
    openapi_extra=SEARCH_BODY,
    summary="Find the images of a dataset that are most like a photo or a text",
)
async def search_dataset(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    dataset_id: Annotated[str, Path(max_length=40)],
    limit: Annotated[int, Query(ge=1, le=500, description="Number of images.")] = 50,
    clustering_id: Annotated[
        str | None,
        Query(
            max_length=40,
            description="Compare by the features of this clustering, and show its clusters. By "
            "default the current one, or else the newest.",
        ),
    ] = None,
    cluster_id: Annotated[
        int | None,
        Query(ge=0, le=2**31 - 1, description="Only images of this cluster of the clustering."),
    ] = None,
) -> schemas.SearchResults:
    """Send a photo in a form, or JSON with an `image_id` or a `text`. A text needs features of a
    backbone that was trained on images and texts, such as `clip_vitb16`. Most similar first,
    without the image itself."""
    space = await run_in_threadpool(
        _open_space, runtime, tenant, (dataset_id, clustering_id, cluster_id)
    )
    without = None
    if media_type_of(request) == FORM:
        vector = await _vector_of_upload(request, space)
    else:
        body = await _read_json(request, runtime.settings.max_json_bytes)
        if body.text is not None:
            vector = await _vector_of_text(request, space, body.text)
        else:
            assert body.image_id is not None
            vector = await _vector_of_image(request, space, tenant, body.image_id)
            without = body.image_id
    found = await run_in_threadpool(
        search_space, runtime.db, runtime.storage, space, vector, limit, without=without
    )
    return schemas.SearchResults(
        dataset_id=space.dataset_id,
        clustering_id=space.clustering_id,
        data=[schemas.FoundImage(**one._asdict()) for one in found],
    )


def _open_space(
    runtime: Runtime, tenant: str, place: tuple[str, str | None, int | None]
) -> SearchSpace:
    with runtime.db.read() as session:
        return open_space(session, tenant, *place)


async def _read_json(request: Request, limit: int) -> schemas.SearchBody:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge(f"The JSON has more than {limit:,} bytes.")
    message = f"send a photo as {FORM}, or JSON with an image_id or a text"
    return parse_json(
        schemas.SearchBody, bytes(body), not_json=InvalidRequest.field("files", message)
    )


async def _vector_of_image(
    request: Request, space: SearchSpace, tenant: str, image_id: str
) -> Vector:
    """The stored features; those of an image that the space does not have are computed."""
    runtime: Runtime = request.app.state.runtime
    image = await run_in_threadpool(_load_image, runtime, tenant, image_id)
    vector = await run_in_threadpool(stored_vector, runtime.storage, space, image.sha256)
    if vector is not None:
        return vector
    async with open_context(request, await _model_of(request, space)) as context:
        data = await run_in_threadpool(_read_image, runtime, image)
        context.reservation.add(images=1, bytes_=len(data))
        return await _embed(context, data)


async def _vector_of_upload(request: Request, space: SearchSpace) -> Vector:
    async with open_context(request, await _model_of(request, space)) as context:
        parts = read_files(request, context.stream_body(), max_files=1)
        (data,) = [part.file.read() async for part in parts]
        context.reservation.enqueue_body(images=1)
        return await _embed(context, data)


async def _vector_of_text(request: Request, space: SearchSpace, text: str) -> Vector:
    async with open_context(request, await _model_of(request, space)) as context:
        files = context.model.files
        if not files.has_text_encoder:
            raise InvalidRequest.field(
                "text",
                f"the features of this dataset are those of {files.backbone}"
                f"{' after fine-tuning' if files.is_finetuned else ''}, which cannot be compared "
                "with texts; cluster it with a backbone that was trained on images and texts, such "
                "as clip_vitb16 or siglip2_vitb16",
            )
        context.reservation.add(images=1, bytes_=len(text))
        (vector,) = await context.serving.embed_texts(files, [text])
        return vector


async def _embed(context: PredictContext, data: bytes) -> Vector:
    (outcome,) = await context.embed(PredictInputs(images=[data]), None)
    if isinstance(outcome, ImageRejected):
        raise outcome
    return np.asarray(outcome, dtype=np.float32)


async def _model_of(request: Request, space: SearchSpace) -> str:
    """A reference to the model version whose backbone gave the features."""
    if space.model is None:
        raise FeaturesMissing(
            f"The dataset {space.dataset_id} has no clustering, whose model would be needed to "
            "search by a new photo or a text. Cluster it first."
        )
    name, version = space.model
    reference = f"{name}/versions/{version}"
    try:
        await request.app.state.resolver.resolve(request.state.actor.tenant, reference)
    except NotFound as error:
        raise FeaturesMissing(
            f"The features of the dataset are those of version {version} of model {name}, which "
            "was deleted. Search by an image of the dataset, or cluster it again."
        ) from error
    return reference


def _load_image(runtime: Runtime, tenant: str, image_id: str) -> Image:
    with runtime.db.read() as session:
        return get_image(session, tenant, image_id)


def _read_image(runtime: Runtime, image: Image) -> bytes:
    try:
        return runtime.storage.read(blob_key(image.sha256))
    except FileNotFoundError as error:
        raise NotFound(f"The bytes of image {image.id} are missing from the storage.") from error
