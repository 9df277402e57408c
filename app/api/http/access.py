"""Every route of a collection: which key, how often, and whether it may do this.

All of it is decided before a byte of the body is read, so that a request without a key costs
nothing but its head.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param

from app.api.http.errors import responses as problem_responses
from app.api.http.request_bodies import MAX_JSON_VALUES, BodyRules, bounded, has_body
from app.api.http.validation import check_json_values
from app.core.access.key_cache import ApiKeyCache
from app.core.access.limits import RateLimits
from app.core.access.open_responses import OpenResponses
from app.core.platform.actor import Actor, Scope
from app.core.platform.audit import CurrentRequest, begin_request
from app.core.platform.logs import bind_task
from app.core.runtime import Runtime

_READING = ("GET", "HEAD")
_WITH_BODY = {"POST", "PUT", "PATCH"}


class Access:
    """What the auth holds for all requests of a process."""

    def __init__(self, runtime: Runtime) -> None:
        self.keys = ApiKeyCache(runtime.db, runtime.settings)
        self.limits = RateLimits(runtime.settings.broker_url)
        self.downloads = OpenResponses("downloads", runtime.settings.max_open_downloads)
        self.event_streams = OpenResponses("event streams", runtime.settings.max_event_streams)


class ApiKeyAuth(HTTPBearer):
    """States the scope that a router needs, and describes the key in OpenAPI.

    Without a stated scope, reading needs `read` and all else `write`. A `GuardedRoute` has
    checked the key before the dependencies run; for any other route it is checked here.
    """

    def __init__(self, scope: Scope | None = None) -> None:
        self.scope = scope
        super().__init__(
            scheme_name="HTTPBearer",
            description="Needed once the service has a key.",
            auto_error=False,
        )

    async def __call__(self, request: Request) -> Actor:  # type: ignore[override]
        actor: Actor | None = getattr(request.state, "actor", None)
        return actor or await admit(request, self.scope)


class GuardedRoute(APIRoute):
    """Checks key, rate, scope, media type and length before the body is read or parsed.

    FastAPI reads and parses a body before it runs any dependency: there it would be too late.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if _WITH_BODY & set(options.get("methods") or ()):
            options["responses"] = {
                **problem_responses(408, 413, 415),
                **(options.get("responses") or {}),
            }
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        scope = _stated_scope(self)
        rules = BodyRules.of(self)

        async def guarded(request: Request) -> Response:
            await admit(request, scope)
            if has_body(request):
                rules.check(request)
                request = bounded(request, rules)
                if rules.is_json:  # here an error is told as it is; below it would be a 400
                    check_json_values(await request.body(), MAX_JSON_VALUES)
            return await handle(request)

        return guarded


async def admit(request: Request, scope: Scope | None) -> Actor:
    """The actor of a request that may go on. Most often this has nothing to wait for."""
    access: Access = request.app.state.access
    text = _bearer(request)
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
    actor.check(scope or ("read" if request.method in _READING else "write"))
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


def require_key(router: APIRouter) -> list[Any]:
    """What is to stand before a router that has no auth of its own."""
    own = any(isinstance(stated.dependency, ApiKeyAuth) for stated in router.dependencies)
    return [] if own else [Depends(ApiKeyAuth())]


def _bearer(request: Request) -> str | None:
    scheme, text = get_authorization_scheme_param(request.headers.get("Authorization"))
    return text if scheme.lower() == "bearer" and text else None


def _stated_scope(route: APIRoute) -> Scope | None:
    stated = (d.dependency for d in route.dependencies if isinstance(d.dependency, ApiKeyAuth))
    return next((auth.scope for auth in stated), None)
