"""Names that a person may give to clusters."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.routes.clusterings import ClusteringId
from app.core.clusterings.name_suggestions import MAX_CLUSTERS, Vocabulary, suggest_names
from app.core.clusterings.rows import get_clustering
from app.core.platform.errors import NotFound
from app.core.runtime import Runtime

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/clusterings",
    tags=["clusterings"],
    responses=responses(401, 404, 422, 429, 503),
)


@router.get("/{clustering_id}/name-suggestions", summary="Suggest names for clusters")
async def list_name_suggestions(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    clustering_id: ClusteringId,
    cluster_id: Annotated[
        list[Annotated[int, Query(ge=0, lt=2**31)]] | None,
        Query(
            max_length=MAX_CLUSTERS,
            description="Only these clusters; required if the clustering has more than "
            f"{MAX_CLUSTERS}.",
        ),
    ] = None,
) -> schemas.NameSuggestions:
    """Up to three for each cluster, with what they are based on. A name says what distinguishes a
    cluster from those nearest to it. A cluster without images, or of which nothing is known, has
    none."""
    vocabulary = await _vocabulary(request, runtime, tenant, clustering_id)
    found = await run_in_threadpool(
        suggest_names, runtime.db, runtime.storage, tenant, clustering_id, cluster_id, vocabulary
    )
    return schemas.NameSuggestions.of(found)


async def _vocabulary(
    request: Request, runtime: Runtime, tenant: str, clustering_id: str
) -> Vocabulary | None:
    reference = await run_in_threadpool(_model_of, runtime, tenant, clustering_id)
    try:
        model = await request.app.state.resolver.resolve(tenant, reference)
    except NotFound:  # deleted: the other sources remain
        return None
    found: Vocabulary | None = await request.app.state.vocabulary.of(model.files)
    return found


def _model_of(runtime: Runtime, tenant: str, clustering_id: str) -> str:
    with runtime.db.read() as session:
        clustering = get_clustering(session, tenant, clustering_id)
        return f"{clustering.model_name}/versions/{clustering.model_version}"
