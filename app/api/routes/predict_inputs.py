"""What a predict request may carry: images in a form, ids of images, features."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select

from app.api import schemas
from app.api.http.bodies import FORM
from app.api.http.multipart import read_files
from app.api.http.request_bodies import media_type_of
from app.api.http.validation import check_json_values, parse_json, parse_query
from app.api.routes.predict_place import arriving
from app.core.platform.errors import ImageRejected, InvalidRequest
from app.core.platform.tables import Dataset, Image
from app.core.runtime import Runtime
from app.core.serving.admission import Reservation
from app.core.storage import blob_key

_OTHER_VALUES = 10_000  # that a body may have beside its numbers


class ImageUnknown(ImageRejected):
    code = "not_found"


class ImageGone(ImageRejected):
    code = "image_missing"


@dataclass(frozen=True)
class Images:
    """What to call each image, and its bytes, or why there are none."""

    names: Sequence[str]
    contents: Sequence[bytes | ImageRejected]


def read_options(request: Request) -> schemas.PredictOptions:
    """By hand: declared one by one, they would take longer than all else here does."""
    return parse_query(schemas.PredictOptions, request.query_params)


def is_form(request: Request) -> bool:
    return media_type_of(request) == FORM


async def read_form(request: Request, place: Reservation, most: int) -> Images:
    names: list[str] = []
    contents: list[bytes] = []
    async for part in read_files(request, arriving(request, place), max_files=most):
        names.append(part.filename)
        contents.append(part.file.read())
    place.arrived(images=len(names))
    return Images(names, contents)


async def read_body(request: Request, place: Reservation, most_numbers: int) -> schemas.PredictBody:
    body = bytearray()
    async for chunk in arriving(request, place):
        body += chunk
    place.arrived(images=1)
    check_json_values(body, most_numbers + _OTHER_VALUES, "embeddings")
    return await run_in_threadpool(_parse, bytes(body))  # a million numbers take their time


def _parse(body: bytes) -> schemas.PredictBody:
    message = f"send images as {FORM}, or JSON with image_ids, dataset_id or embeddings"
    not_json = InvalidRequest.field("files", message)
    return parse_json(schemas.PredictBody, body, not_json=not_json)


def read_stored(
    runtime: Runtime, tenant: str, ids: Sequence[str], place: Reservation, most: int
) -> Images:
    """Images of the tenant's datasets; one that is not there gets an error in its place."""
    if len(ids) > most:
        raise InvalidRequest.field("image_ids", f"at most {most} in one request")
    with runtime.db.read() as session:
        rows = session.execute(
            select(Image.id, Image.sha256)
            .join(Dataset, Dataset.id == Image.dataset_id)
            .where(Image.id.in_(set(ids)), Dataset.tenant == tenant)
        )
        hashes = {row.id: row.sha256 for row in rows}
    place.take(images=len(ids) - 1)  # the first has its place already
    contents: list[bytes | ImageRejected] = []
    for image_id in ids:
        if image_id not in hashes:
            contents.append(ImageUnknown(f"There is no image {image_id!r}."))
            continue
        try:
            data = runtime.storage.read(blob_key(hashes[image_id]))
        except FileNotFoundError:
            contents.append(ImageGone("Its bytes are gone from the storage."))
            continue
        place.take(bytes_=len(data))
        contents.append(data)
    return Images(ids, contents)


def to_features(rows: Sequence[Sequence[float]], dim: int, most: int) -> npt.NDArray[np.float32]:
    if len(rows) > most:
        raise InvalidRequest.field("embeddings", f"at most {most} in one request")
    for number, row in enumerate(rows):
        if len(row) != dim:
            raise InvalidRequest.field(
                f"embeddings.{number}", f"has {len(row)} numbers; the model takes {dim}"
            )
    with np.errstate(over="ignore"):  # found by the next look
        features = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(features).all():
        raise InvalidRequest.field("embeddings", "has a number too large for 32 bits")
    return features
