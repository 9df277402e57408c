"""Authentication, rate limit and authorization of a request by its API key.

All of it is decided before a byte of the body is read, so that a request without a key costs no
more than its headers.
"""

import base64
import binascii
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param

from app.api.http.body_limits import MAX_JSON_VALUES, BodyRules, has_body, limit_body
from app.api.http.errors import responses as problem_responses
from app.api.http.validation import check_json_values
from app.core.access.key_cache import ApiKeyCache
from app.core.access.limits import OpenResponseLimit, RateLimits
from app.core.platform.actor import Actor, Scope
from app.core.platform.audit import CurrentRequest, begin_request
from app.core.platform.logs import bind_task
from app.core.runtime import Runtime

_READ_METHODS = ("GET", "HEAD")
_BODY_METHODS = {"POST", "PUT", "PATCH"}
SECURITY_SCHEME = "api_key"
_BASIC_PATHS = "/v1/label-studio/"  # Label Studio sends nothing else


class AccessState:
    """Key cache and limits of this process."""

    def __init__(self, runtime: Runtime) -> None:
        self.keys = ApiKeyCache(runtime.db, runtime.settings)
        self.limits = RateLimits(runtime.settings.broker_url)
        self.downloads = OpenResponseLimit("downloads", runtime.settings.max_open_downloads)
        self.event_streams = OpenResponseLimit("event streams", runtime.settings.max_event_streams)


class ApiKeyAuth(HTTPBearer):
    """Declares the scope that a router requires, and describes the key in OpenAPI.

    Without a declared scope, GET and HEAD require `read` and other methods `write`. An
    `AuthenticatedRoute` has checked the key before the dependencies run; for any other route it
    is checked here.
    """

    def __init__(self, scope: Scope | None = None) -> None:
        self.scope = scope
        super().__init__(
            scheme_name=SECURITY_SCHEME,
            description="An API key, as `Authorization: Bearer KEY`. Required once the service "
            "has a key; `temi keys create NAME` creates one.",
            auto_error=False,
        )

    async def __call__(self, request: Request) -> Actor:  # type: ignore[override]
        actor: Actor | None = getattr(request.state, "actor", None)
        return actor or await authorize(request, self.scope)


class AuthenticatedRoute(APIRoute):
    """Checks key, rate, scope, media type and length before the body is read or parsed.

    FastAPI reads and parses a body before it runs any dependency, which would be too late.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if _BODY_METHODS & set(options.get("methods") or ()):
            options["responses"] = {
                **problem_responses(408, 413, 415),
                **(options.get("responses") or {}),
            }
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        scope = _declared_scope(self)
        rules = BodyRules.of(self)

        async def handle_authorized(request: Request) -> Response:
            await authorize(request, scope)
            if has_body(request):
                rules.check(request)
                request = limit_body(request, rules)
                if rules.is_json:  # FastAPI would turn an error in here into a 400
                    check_json_values(await request.body(), MAX_JSON_VALUES)
            return await handle(request)

        return handle_authorized


async def authorize(request: Request, scope: Scope | None) -> Actor:
    """Returns the actor of the request; raises if its key, rate or scope does not allow it."""
    access: AccessState = request.app.state.access
    text = _key_of(request)
    actor = access.keys.cached(text)
    if actor is None:
        actor = await run_in_threadpool(access.keys.authenticate, text)
    request.state.actor = actor
    bind_task(tenant=actor.tenant, key_id=actor.key_id)
    if actor.requests_per_minute is not None:
        if access.limits.is_shared:
            await run_in_threadpool(access.limits.hit, actor)
        else:
            access.limits.hit(actor)
    actor.check(scope or ("read" if request.method in _READ_METHODS else "write"))
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
    """Dependencies for a router that declares no scope of its own."""
    own = any(isinstance(d.dependency, ApiKeyAuth) for d in router.dependencies)
    return [] if own else [Depends(ApiKeyAuth())]


def _key_of(request: Request) -> str | None:
    scheme, text = get_authorization_scheme_param(request.headers.get("Authorization"))
    if scheme.lower() == "basic" and request.url.path.startswith(_BASIC_PATHS):
        return _password_of(text)
    return text if scheme.lower() == "bearer" and text else None


def _password_of(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return None


def _declared_scope(route: APIRoute) -> Scope | None:
    declared = (d.dependency for d in route.dependencies if isinstance(d.dependency, ApiKeyAuth))
    return next((auth.scope for auth in declared), None)
