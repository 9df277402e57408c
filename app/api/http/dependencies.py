"""Dependencies of routes: the runtime, the actor, a session."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Header, Request
from sqlalchemy.orm import Session

from app.core.platform.actor import Actor
from app.core.runtime import Runtime
from app.core.serving.client import Serving
from app.core.serving.resolver import ModelResolver


# `async` although they wait for nothing: FastAPI runs plain functions in another thread.
async def get_runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


RuntimeDep = Annotated[Runtime, Depends(get_runtime)]


async def get_serving(request: Request) -> Serving:
    serving: Serving = request.app.state.serving
    return serving


ServingDep = Annotated[Serving, Depends(get_serving)]


async def get_resolver(request: Request) -> ModelResolver:
    resolver: ModelResolver = request.app.state.resolver
    return resolver


ResolverDep = Annotated[ModelResolver, Depends(get_resolver)]


async def get_actor(request: Request) -> Actor:
    """The actor that `AuthenticatedRoute` has found."""
    actor: Actor = request.state.actor
    return actor


ActorDep = Annotated[Actor, Depends(get_actor)]


async def get_tenant(actor: ActorDep) -> str:
    return actor.tenant


TenantDep = Annotated[str, Depends(get_tenant)]


def get_session(runtime: RuntimeDep) -> Iterator[Session]:
    with runtime.db.read() as session:
        yield session


# Closed before the response is sent: a slow reader would otherwise hold a connection.
SessionDep = Annotated[Session, Depends(get_session, scope="function")]

IfNoneMatchHeader = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        max_length=300,
        description="The `ETag` that you have; the response is 304 if it is still the same.",
    ),
]

IdempotencyKeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="A text of your choice. A request that is repeated with the same key and body "
        "gets the first response again instead of a second dataset or job.",
    ),
]
