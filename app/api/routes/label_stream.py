"""The labels of a whole dataset in one answer, whatever its size."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from app.api.http.access import GuardedRoute
from app.api.http.dependencies import RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.negotiation import choose_media_type, is_known
from app.api.http.open_responses import OneDownload
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
from app.core.exports.arrow import arrow_chunks, arrow_schema
from app.core.exports.csv_file import csv_chunks
from app.core.exports.json_lines import json_chunks
from app.core.exports.rows import LABELS, to_json
from app.core.platform.db import Database
from app.core.platform.tables import Dataset

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/datasets",
    tags=["datasets"],
    responses=responses(401, 422, 503),
)

Pages = Iterator[list[LabeledImage]]
_ENCODERS: dict[str, Callable[[Pages, RevisionView], Iterator[bytes]]] = {
    "application/x-ndjson": lambda pages, _: json_chunks(pages, LABELS),
    "text/csv": lambda pages, _: csv_chunks(pages, LABELS),
    "application/vnd.apache.arrow.stream": lambda pages, view: arrow_chunks(
        pages, arrow_schema(LABELS, _facts(view))
    ),
}


@router.get(
    "/{dataset_id}/labels",
    dependencies=[OneDownload],
    response_class=StreamingResponse,
    responses={
        200: {"content": {media_type: {} for media_type in _ENCODERS}},
        304: {"description": "Not changed"},
        **responses(404, 406),
    },
    summary="All labels of a dataset as a stream",
)
def stream_labels(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    dataset_id: Annotated[str, Path(max_length=40)],
    clustering_id: Annotated[
        str | None, Query(max_length=40, description="By default the newest of the dataset.")
    ] = None,
    revision: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="By default the current one.")
    ] = None,
    min_probability: Annotated[float | None, Query(ge=0, le=1)] = None,
    cluster_id: Annotated[
        list[Annotated[int, Field(ge=0, lt=2**31)]] | None,
        Query(max_length=1000, description="Only these; may be given several times."),
    ] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """A row for each image of the clustering, in the order of the upload: `image_id`, `name`,
    `cluster_id`, `label`, `probability`, `excluded`, `true_label`. JSON lines, CSV or an Arrow
    stream, by `Accept`. Images that were taken out have no cluster, and are left out where
    clusters are asked for. The headers `X-Clustering` and `X-Revision` say what is answered from.
    If the connection breaks before the end, so does the answer: nothing is cut silently."""
    media_type = choose_media_type(",".join(request.headers.getlist("accept")), list(_ENCODERS))
    wanted = LabelFilter(
        cluster_ids=frozenset(cluster_id) if cluster_id else None,
        min_probability=min_probability,
        include_excluded=not cluster_id,
    )
    with runtime.db.read() as session:  # not kept open while a slow client reads
        dataset = get_dataset(session, tenant, dataset_id)
        clustering = find_clustering(session, tenant, dataset, clustering_id)
        view = open_revision(session, clustering, revision)
        check_clusters(view, cluster_id or (), "cluster_id")
    headers = _headers(view, dataset, wanted, media_type)
    if is_known(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    chunks = _ENCODERS[media_type](_pages(runtime.db, view, wanted), view)
    return StreamingResponse(_started(chunks), media_type=media_type, headers=headers)


def _facts(view: RevisionView) -> dict[str, str]:
    return {"clustering_id": view.clustering_id, "revision": str(view.revision)}


def _headers(
    view: RevisionView, dataset: Dataset, wanted: LabelFilter, media_type: str
) -> dict[str, str]:
    """A revision never changes, but images may be deleted: the fingerprint tells."""
    chosen = sorted(wanted.cluster_ids) if wanted.cluster_ids else None
    facts = [_facts(view), dataset.fingerprint, chosen, wanted.min_probability, media_type]
    return {
        "X-Clustering": view.clustering_id,
        "X-Revision": str(view.revision),
        "ETag": f'"{hashlib.sha256(to_json(facts).encode()).hexdigest()[:32]}"',
        "Vary": "Accept",
        "Cache-Control": "private, no-cache",
    }


def _pages(db: Database, view: RevisionView, wanted: LabelFilter) -> Pages:
    for page in iterate_pages(db, view):
        if kept := [row for row in page if wanted.keeps(row)]:
            yield kept


def _started(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """With the head and a page made: a database that is down is still answered with an error."""
    return chain(list(islice(chunks, 2)), chunks)
