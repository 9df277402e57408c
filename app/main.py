"""The API as an ASGI application."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio import CapacityLimiter
from fastapi import FastAPI

from app.api.http.access import Access, require_key
from app.api.http.errors import install_error_handlers, responses
from app.api.http.middleware import RequestContext
from app.api.http.origins import OriginCheck
from app.api.http.security_headers import SecurityHeaders
from app.api.http.shutdown import notice_stop
from app.api.metrics import Metrics
from app.api.routes import (
    audit,
    cluster_pictures,
    clusterings,
    datasets,
    docs,
    duplicates,
    exports,
    image_labels,
    images,
    jobs,
    keys,
    label_stream,
    loaded_models,
    maps,
    model_aliases,
    model_comparison,
    model_files,
    models,
    oip,
    operations,
    predictions,
    system,
    tus,
    workers,
)
from app.core.health import Health
from app.core.platform import tracing
from app.core.platform.logs import configure_logging
from app.core.platform.permissions import restrict_new_files
from app.core.platform.settings import Settings, get_settings
from app.core.runtime import Runtime
from app.core.serving import Serving
from app.core.serving.preload import ModelPreloader
from app.core.serving.references import References

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


def create_app(settings: Settings | None = None) -> FastAPI:
    settings = settings or get_settings()
    runtime = Runtime(settings)
    metrics = Metrics(runtime)
    serving = Serving(settings, metrics.serving)
    references = References(runtime, serving)
    preloader = ModelPreloader(runtime, serving, references)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        configure_logging(settings)
        restrict_new_files(settings)
        tracing.start_tracing(settings, "api")
        settings.temporary_dir.mkdir(parents=True, exist_ok=True)
        tempfile.tempdir = str(settings.temporary_dir)  # uploads wait on the storage's disk
        await preloader.start()
        with notice_stop(runtime.stopping):
            yield
        preloader.stop()
        serving.close()
        tracing.stop_tracing()
        runtime.db.dispose()

    app = FastAPI(
        title="TEMI clustering service",
        version=version("temi-service"),
        description=_DESCRIPTION,
        lifespan=lifespan,
        separate_input_output_schemas=False,
        docs_url=None,  # `docs` has its own, without scripts of elsewhere
        redoc_url=None,
    )
    app.state.runtime = runtime
    app.state.serving = serving
    app.state.references = references
    app.state.access = Access(runtime)
    app.state.thumbnail_threads = CapacityLimiter(images.THUMBNAIL_THREADS)
    app.state.metrics = metrics
    app.state.health = Health(runtime, preloader.finding)
    install_error_handlers(app)
    for room in (
        predictions,  # asked for most often: the first that matches is taken
        datasets,
        images,
        image_labels,
        duplicates,
        jobs,
        maps,
        clusterings,
        operations,
        cluster_pictures,
        model_comparison,  # before the models, one of which might be called `x:compare`
        models,
        model_aliases,
        model_files,
        loaded_models,
        exports,
        label_stream,
        tus,
        workers,
        keys,
        audit,
        oip.models,
        oip.infer,
    ):
        app.include_router(
            room.router,
            dependencies=require_key(room.router),
            responses=responses(401, 403, 421, 429),
        )
    for room in (
        system,
        oip.server,
        docs,
    ):  # open to everybody: they tell nothing of the collections
        app.include_router(room.router)
    app.add_middleware(
        OriginCheck, keys=app.state.access.keys, allowed_hosts=settings.allowed_hosts
    )
    app.add_middleware(tus.TusHeaders)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestContext, metrics=app.state.metrics.http)
    return app
