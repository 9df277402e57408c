"""Streams the labels of a whole dataset, whatever its size."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.limits import DownloadLimit
from app.api.http.negotiation import choose_media_type, matches_etag
from app.core.clusterings.queries import find_clustering
from app.core.clusterings.revisions import (
    LabeledImage,
    LabelFilter,
    RevisionView,
    check_clusters,
    iterate_pages,
    open_revision,
)
from app.core.datasets.rows import get_dataset
from app.core.exports.rows import LABELS, to_json
from app.core.exports.text import csv_chunks, json_chunks
from app.core.platform.db import Database
from app.core.platform.tables import Dataset

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/datasets",
    tags=["datasets"],
    responses=responses(401, 422, 503),
)

Pages = Iterator[list[LabeledImage]]


def _arrow_chunks(pages: Pages, view: RevisionView) -> Iterator[bytes]:
    from app.core.exports.arrow import arrow_chunks, arrow_schema  # loads pyarrow

    return arrow_chunks(pages, arrow_schema(LABELS, _metadata(view)))


_ENCODERS: dict[str, Callable[[Pages, RevisionView], Iterator[bytes]]] = {
    "application/x-ndjson": lambda pages, _: json_chunks(pages, LABELS),
    "text/csv": lambda pages, _: csv_chunks(pages, LABELS),
    "application/vnd.apache.arrow.stream": _arrow_chunks,
}


@router.get(
    "/{dataset_id}/labels",
    dependencies=[DownloadLimit],
    response_class=StreamingResponse,
    responses={
        200: {"content": {media_type: {} for media_type in _ENCODERS}},
        304: {"description": "Not modified"},
        **responses(404, 406),
    },
    summary="Stream the labels of a dataset",
)
def stream_labels(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    dataset_id: Annotated[str, Path(max_length=40)],
    clustering_id: Annotated[
        str | None, Query(max_length=40, description="By default the current one of the dataset.")
    ] = None,
    revision: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="By default the current revision.")
    ] = None,
    min_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    cluster_id: Annotated[
        list[Annotated[int, Field(ge=0, lt=2**31)]] | None,
        Query(max_length=1000, description="Only these clusters; may be repeated."),
    ] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """A row for each image of the clustering, in the order of the upload: `image_id`, `name`,
    `cluster_id`, `label`, `probability`, `excluded`, `true_label`. The format is JSON lines, CSV or
    an Arrow stream, by `Accept`. Excluded images have no cluster; with `cluster_id` they are left
    out. The headers `X-Clustering` and `X-Revision` name the clustering and its revision. After an
    error in the middle the connection is closed without the end of the stream."""
    media_type = choose_media_type(",".join(request.headers.getlist("accept")), list(_ENCODERS))
    label_filter = LabelFilter(
        cluster_ids=frozenset(cluster_id) if cluster_id else None,
        min_probability=min_probability,
        include_excluded=not cluster_id,
    )
    with runtime.db.read() as session:  # closed before a slow client reads
        dataset = get_dataset(session, tenant, dataset_id)
        clustering = find_clustering(session, tenant, dataset, clustering_id)
        view = open_revision(session, clustering, revision)
        check_clusters(view, cluster_id or (), "cluster_id")
    headers = _headers(view, dataset, label_filter, media_type)
    if matches_etag(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    chunks = _ENCODERS[media_type](_pages(runtime.db, view, label_filter), view)
    return StreamingResponse(_with_first_page(chunks), media_type=media_type, headers=headers)


def _metadata(view: RevisionView) -> dict[str, str]:
    return {"clustering_id": view.clustering_id, "revision": str(view.revision)}


def _headers(
    view: RevisionView, dataset: Dataset, label_filter: LabelFilter, media_type: str
) -> dict[str, str]:
    """The fingerprint is part of the ETag: a revision never changes, but images may be deleted."""
    chosen = sorted(label_filter.cluster_ids) if label_filter.cluster_ids else None
    parts = [_metadata(view), dataset.fingerprint, chosen, label_filter.min_probability, media_type]
    return {
        "X-Clustering": view.clustering_id,
        "X-Revision": str(view.revision),
        "ETag": f'"{hashlib.sha256(to_json(parts).encode()).hexdigest()[:32]}"',
        "Vary": "Accept",
        "Cache-Control": "private, no-cache",
    }


def _pages(db: Database, view: RevisionView, label_filter: LabelFilter) -> Pages:
    for page in iterate_pages(db, view):
        if kept := [row for row in page if label_filter.keeps(row)]:
            yield kept


def _with_first_page(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Computes the header and the first page, so that a failing database still gives an error
    response."""
    return chain(list(islice(chunks, 2)), chunks)
