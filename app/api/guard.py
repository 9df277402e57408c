"""The door of every route: which key, how often, and whether it may do this."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.core.access.actor import Actor, Scope
from app.core.access.audit import CurrentRequest, begin_request
from app.core.access.limits import RateLimits
from app.core.access.ring import KeyRing
from app.core.logs import bind_task
from app.core.runtime import Runtime

_bearer = HTTPBearer(auto_error=False, description="Needed once the service has a key.")
_READING = ("GET", "HEAD")


class Access:
    """What the door holds for all requests of a process."""

    def __init__(self, runtime: Runtime) -> None:
        self.keys = KeyRing(runtime.db, runtime.settings)
        self.limits = RateLimits(runtime.settings.broker_url)


@dataclass(frozen=True)
class _Requirement:
    """Does nothing itself: the door looks for it on the route that was asked for."""

    scope: Scope

    async def __call__(self) -> None:
        pass


def require(scope: Scope) -> Any:
    """For the `dependencies` of a route or router that needs another scope than its method says.

    Without it, reading needs `read` and all else `write`.
    """
    return Depends(_Requirement(scope))


async def get_actor(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Actor:
    """Runs before all else of every route. Most often it has nothing to wait for."""
    access: Access = request.app.state.access
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
    actor.check(_scope_of(request))
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


def _scope_of(request: Request) -> Scope:
    for stated in reversed(request.scope["route"].dependencies):  # the route's before its router's
        if isinstance(stated.dependency, _Requirement):
            return stated.dependency.scope
    return "read" if request.method in _READING else "write"
