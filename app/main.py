"""The API as an ASGI application."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from anyio import CapacityLimiter
from fastapi import FastAPI

from app.api.http.auth import AccessState, require_key
from app.api.http.errors import HEAD_TOO_LARGE, install_error_handlers, responses
from app.api.http.middleware import RequestContext, SecurityHeaders
from app.api.http.openapi import CONTACT, LICENSE, SERVERS, TAGS, DocumentedApi, operation_id
from app.api.http.origins import Cors, OriginCheck
from app.api.http.shutdown import notice_stop
from app.api.metrics import Metrics
from app.api.routes import (
    audit,
    cluster_pictures,
    clustering_changes,
    clusterings,
    current_clusterings,
    dataset_labels,
    datasets,
    docs,
    exports,
    images,
    job_plots,
    jobs,
    keys,
    label_studio,
    loaded_models,
    maps,
    model_aliases,
    model_calibrations,
    model_files,
    models,
    name_suggestions,
    oip,
    operations,
    predictions,
    proposals,
    refused_images,
    review,
    search,
    service,
    system,
    uploads,
    workbench,
    workers,
)
from app.core.health import Health
from app.core.platform import tracing
from app.core.platform.logs import configure_logging
from app.core.platform.processes import restrict_new_files
from app.core.platform.settings import Settings, get_settings
from app.core.platform.version import package_version
from app.core.runtime import Runtime
from app.core.serving.client import Serving
from app.core.serving.counting import PredictionCounter
from app.core.serving.keeping import RefusedKeeper
from app.core.serving.preload import ModelPreloader
from app.core.serving.resolver import ModelResolver
from app.core.serving.vocabulary import VocabularyEmbedder

_DESCRIPTION = """
Sorts unlabeled photo collections into meaningful groups and labels new photos.

1. `POST /v1/datasets` with a zip of images.
2. `POST /v1/jobs` with the number of groups to look for.
3. `GET /v1/jobs/{id}/events` to follow it.
4. `GET /v1/clusterings/{id}/clusters` and `/assignments` to see what was found.
5. `POST /v1/models/{name}:predict` to label new images.

Long work answers `202` with the job's address in `Location`. Errors are RFC 9457 problems with a
stable `code`. Lists go page by page: pass `next_cursor` back as `cursor`.
"""
# The first route that matches is taken: predictions are requested most often.
_WITH_KEY = (
    predictions,
    datasets,
    search,
    images,
    jobs,
    job_plots,
    maps,
    clusterings,
    name_suggestions,
    operations,
    clustering_changes,
    review,
    cluster_pictures,
    models,
    model_aliases,
    model_calibrations,
    model_files,
    proposals,
    refused_images,
    loaded_models,
    exports,
    current_clusterings,
    dataset_labels,
    uploads,
    workers,
    service,
    keys,
    audit,
    oip.models,
    oip.infer,
    label_studio,
)
_WITHOUT_KEY = (system, oip.server, docs, workbench)  # they show nothing of the collections


def create_app(settings: Settings | None = None) -> FastAPI:
    settings = settings or get_settings()
    runtime = Runtime(settings)
    metrics = Metrics(runtime)
    serving = Serving(settings, metrics.serving)
    resolver = ModelResolver(runtime.db, serving)
    preloader = ModelPreloader(runtime.db, serving, resolver, settings.predict_idle_seconds)
    app = DocumentedApi(
        title="TEMI clustering service",
        version=package_version(),
        description=_DESCRIPTION,
        contact=CONTACT,
        license_info=LICENSE,
        servers=SERVERS,
        openapi_tags=TAGS,
        generate_unique_id_function=operation_id,
        lifespan=partial(_lifespan, preloader=preloader),
        separate_input_output_schemas=False,
        docs_url=None,  # `routes.docs` serves it without scripts from other hosts
        redoc_url=None,
    )
    app.state.runtime = runtime
    app.state.serving = serving
    app.state.resolver = resolver
    app.state.vocabulary = VocabularyEmbedder(settings, serving)
    app.state.counter = PredictionCounter(runtime.db)
    app.state.keeper = RefusedKeeper(runtime.db, runtime.storage, runtime.decoders, settings)
    app.state.access = AccessState(runtime)
    app.state.thumbnail_threads = CapacityLimiter(images.THUMBNAIL_THREADS)
    app.state.metrics = metrics
    app.state.health = Health(runtime, preloader.check)
    install_error_handlers(app)
    _include_routers(app)
    app.add_middleware(
        OriginCheck,
        keys=app.state.access.keys,
        allowed_hosts=settings.allowed_hosts,
        cors_origins=settings.cors_origins,
    )
    app.add_middleware(uploads.TusHeaders)
    if settings.cors_origins:
        app.add_middleware(Cors, origins=settings.cors_origins)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestContext, metrics=metrics.http)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI, *, preloader: ModelPreloader) -> AsyncIterator[None]:
    runtime: Runtime = app.state.runtime
    settings = runtime.settings
    configure_logging(settings)
    restrict_new_files(settings)
    tracing.start_tracing(settings, "api")
    settings.temporary_dir.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(settings.temporary_dir)  # uploads are buffered on the storage's disk
    await preloader.start()
    app.state.counter.start()
    app.state.keeper.start()
    with notice_stop(runtime.stopping):
        yield
    preloader.stop()
    await app.state.counter.stop()
    await app.state.keeper.stop()
    app.state.serving.close()
    tracing.stop_tracing()
    runtime.db.dispose()


def _include_routers(app: FastAPI) -> None:
    for module in _WITH_KEY:
        app.include_router(
            module.router,
            dependencies=require_key(module.router),
            responses=responses(401, 403, 421, 429),
        )
    for module in _WITHOUT_KEY:
        app.include_router(module.router, responses=HEAD_TOO_LARGE)
