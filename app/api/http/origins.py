"""Refuses requests that a page of another site makes a browser send.

There are two attacks. Cross-site request forgery: the page sends a request to our address, and the
browser adds the page's origin. DNS rebinding: the page's host name resolves to our address, so that
the browser treats us as that site, and only the Host header shows it.

`TEMI_CORS_ORIGINS` names the sites whose pages are allowed all the same.
"""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.errors import database_problem, problem_of
from app.core.access.key_cache import ApiKeyCache
from app.core.platform.errors import ForeignOrigin, HostNotAllowed, ServiceError

_SAFE = ("GET", "HEAD", "OPTIONS")
_METHODS = (*_SAFE, "POST", "PUT", "PATCH", "DELETE")
_UPLOAD_HEADERS = ("Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset")
# Of requests and responses beside those that CORS always allows.
_REQUEST_HEADERS = (
    *("Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "If-Range"),
    *("Range", "Last-Event-ID", "Cache-Control", "X-Request-ID", "traceparent"),
    *("Inference-Header-Content-Length", "Upload-Checksum", *_UPLOAD_HEADERS),
)
_RESPONSE_HEADERS = (
    *("Location", "ETag", "Link", "Retry-After", "Allow", "WWW-Authenticate", "X-Request-ID"),
    *("Content-Disposition", "Content-Range", "Accept-Ranges", "X-Clustering", "X-Revision"),
    *("Inference-Header-Content-Length", "traceparent", "Upload-Expires", *_UPLOAD_HEADERS),
    *("Tus-Version", "Tus-Extension", "Tus-Max-Size", "Tus-Checksum-Algorithm"),
)
_LIVENESS = ("/livez", "/v2/health/live")  # the same for every service
# Requested by IP address inside of a cluster; they show nothing of the collections.
_MONITORING = (*_LIVENESS, "/readyz", "/v2/health/ready", "/metrics")
_OWN_SITE = ("same-origin", "none")  # `none`: the user has entered the URL
_DEFAULT_PORTS = {"http": 80, "https": 443}


class OriginCheck:
    """Runs before all routes, and before a body is read."""

    def __init__(
        self,
        app: ASGIApp,
        keys: ApiKeyCache,
        allowed_hosts: tuple[str, ...],
        cors_origins: tuple[str, ...],
    ) -> None:
        self._app = app
        self._keys = keys
        self._cors_origins = cors_origins
        self._allowed = tuple(name.lower() for name in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            try:
                await self._check_host(headers, scope["path"])
                if scope["method"] not in _SAFE:
                    check_origin(headers, self._cors_origins)
            except ServiceError as error:
                await problem_of(Request(scope), error)(scope, receive, send)
                return
            except SQLAlchemyError as error:
                await database_problem(Request(scope), error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check_host(self, headers: Headers, path: str) -> None:
        given = headers.getlist("host")
        names = [host_name(value) for value in given]
        if names and all(is_loopback(name) or self._is_allowed(name) for name in names):
            return
        if path in _LIVENESS:
            return
        if self._keys.required or await run_in_threadpool(self._keys.check_required):
            if not self._allowed or path in _MONITORING:
                return
            hint = "Add it to TEMI_ALLOWED_HOSTS."
        else:
            hint = (
                "A service without a key accepts localhost and 127.0.0.1 only. Create a key with "
                "`temi keys create NAME`, or add the name to TEMI_ALLOWED_HOSTS."
            )
        raise HostNotAllowed(f"The host {', '.join(given)[:200]!r} is not allowed. {hint}")

    def _is_allowed(self, name: str) -> bool:
        return any(
            pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))
            for pattern in self._allowed
        )


def check_origin(headers: Headers, cors_origins: Collection[str] = ()) -> None:
    """Checks a request that may change data. Programs send neither header and pass."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if origin in cors_origins:  # scripts can set neither of the two
        is_own = True
    elif site is not None:
        is_own = site in _OWN_SITE
    elif origin is not None:
        is_own = _host_of(origin) == headers.get("host", "").lower()
    else:
        is_own = True
    if not is_own:
        raise ForeignOrigin(
            f"Pages of {(origin or 'another site')[:200]} must not change data. Call the service "
            "from its own page or from a program, or add the origin to TEMI_CORS_ORIGINS."
        )


class Cors:
    """CORS for the configured origins; requests of all others pass without it."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins
        self._cors = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=_METHODS,
            allow_headers=_REQUEST_HEADERS,
            expose_headers=_RESPONSE_HEADERS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        configured = scope["type"] == "http" and Headers(scope=scope).get("origin") in self._origins
        await (self._cors if configured else self._app)(scope, receive, send)


def host_name(host: str) -> str:
    """The host without port and without the brackets of an IPv6 address."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_loopback(name: str) -> bool:
    if name in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host_of(origin: str) -> str | None:
    """Host and port as in a Host header: without a default port."""
    try:
        parts = urlsplit(origin.lower())
        port, host = parts.port, parts.hostname
    except ValueError:
        return None
    if not host or parts.scheme not in _DEFAULT_PORTS:
        return None
    host = f"[{host}]" if ":" in host else host
    return host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
