"""The door of every route: which key, how often, and whether it may do this."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer

from app.core.access.actor import Actor, Scope
from app.core.access.audit import CurrentRequest, begin_request
from app.core.access.limits import RateLimits
from app.core.access.open_responses import OpenResponses
from app.core.access.ring import KeyRing
from app.core.logs import bind_task
from app.core.runtime import Runtime

_READING = ("GET", "HEAD")


class Access:
    """What the door holds for all requests of a process."""

    def __init__(self, runtime: Runtime) -> None:
        self.keys = KeyRing(runtime.db, runtime.settings)
        self.limits = RateLimits(runtime.settings.broker_url)
        self.downloads = OpenResponses("downloads", runtime.settings.max_open_downloads)
        self.event_streams = OpenResponses("event streams", runtime.settings.max_event_streams)


class Door(HTTPBearer):
    """Runs before all else of a router. Most often it has nothing to wait for.

    Without a stated scope, reading needs `read` and all else `write`.
    """

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope
        super().__init__(
            scheme_name="HTTPBearer",
            description="Needed once the service has a key.",
            auto_error=False,
        )

    async def __call__(self, request: Request) -> Actor:  # type: ignore[override]
        access: Access = request.app.state.access
        credentials = await super().__call__(request)
        text = credentials.credentials if credentials else None
        actor = access.keys.known(text)
        if actor is None:
            actor = await run_in_threadpool(access.keys.find, text)
        request.state.actor = actor
        bind_task(tenant=actor.tenant, key_id=actor.key_id)
        if actor.requests_per_minute is not None:
            if access.limits.is_shared:
                await run_in_threadpool(access.limits.hit, actor)
            else:
                access.limits.hit(actor)
        actor.check(self._scope_of(request))
        begin_request(
            CurrentRequest(
                actor=actor,
                method=request.method,
                route=request.scope["route"].path,
                path=request.url.path,
                request_id=getattr(request.state, "request_id", None),
            )
        )
        return actor

    def _scope_of(self, request: Request) -> Scope:
        return self._scope or ("read" if request.method in _READING else "write")


def with_door(router: APIRouter) -> list[Any]:
    """What is to stand before a router that has no door of its own."""
    own = any(isinstance(stated.dependency, Door) for stated in router.dependencies)
    return [] if own else [Depends(Door())]
