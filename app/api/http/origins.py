"""Requests that a page of another site makes a browser send are refused here.

Two ways exist. A page may send a request to our address (cross-site request forgery): the browser
names the page's origin. Or its own host name is made to point at our address (DNS rebinding): the
browser takes us for that site, and only the Host header tells.
"""

import ipaddress
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.errors import problem, problem_of
from app.core.access.key_cache import ApiKeyCache
from app.core.platform.errors import ForeignOrigin, HostNotAllowed, ServiceError

_SAFE = ("GET", "HEAD", "OPTIONS")
_ALIVE = ("/livez", "/v2/health/live")  # say the same of every service
# Asked for by address, from inside a cluster; they tell nothing of the collections.
_MONITORING = (*_ALIVE, "/readyz", "/v2/health/ready", "/metrics")
_OWN_SITE = ("same-origin", "none")  # `none`: a person typed the address
_DEFAULT_PORTS = {"http": 80, "https": 443}


class OriginCheck:
    """In front of all routes, and before a body is read."""

    def __init__(self, app: ASGIApp, keys: ApiKeyCache, allowed_hosts: tuple[str, ...]) -> None:
        self._app = app
        self._keys = keys
        self._allowed = tuple(name.lower() for name in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            try:
                await self._check_host(headers, scope["path"])
                if scope["method"] not in _SAFE:
                    check_origin(headers)
            except ServiceError as error:
                answer = problem_of(Request(scope), error)
                await answer(scope, receive, send)
                return
            except SQLAlchemyError:
                detail = "The database cannot be reached; try again in a moment."
                answer = problem(Request(scope), 503, "database_unavailable", detail)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check_host(self, headers: Headers, path: str) -> None:
        given = headers.getlist("host")
        names = [host_name(value) for value in given]
        if names and all(is_loopback(name) or self._is_allowed(name) for name in names):
            return
        if path in _ALIVE:
            return
        if self._keys.needed or await run_in_threadpool(self._keys.learn_whether_needed):
            if not self._allowed or path in _MONITORING:
                return
            what_to_do = "Add it to TEMI_ALLOWED_HOSTS."
        else:
            what_to_do = (
                "A service without a key answers to localhost and 127.0.0.1 only. Make a key with "
                "`temi keys create NAME`, or add the name to TEMI_ALLOWED_HOSTS."
            )
        raise HostNotAllowed(
            f"The host {', '.join(given)[:200]!r} is not served here. {what_to_do}"
        )

    def _is_allowed(self, name: str) -> bool:
        return any(
            pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))
            for pattern in self._allowed
        )


def check_origin(headers: Headers) -> None:
    """For a request that may change something. Programs send neither header and pass."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:  # no script can set it
        is_own = site in _OWN_SITE
    elif origin is not None:
        is_own = _address_of(origin) == headers.get("host", "").lower()
    else:
        is_own = True
    if not is_own:
        raise ForeignOrigin(
            f"A page of {(origin or 'another site')[:200]} may not change anything here. Call the "
            "service from its own page or from a program."
        )


def host_name(host: str) -> str:
    """Without the port; an IPv6 address without its brackets."""
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


def _address_of(origin: str) -> str | None:
    """Host and port as a Host header has them: without the port that goes without saying."""
    try:
        parts = urlsplit(origin.lower())
        port, host = parts.port, parts.hostname
    except ValueError:
        return None
    if not host or parts.scheme not in _DEFAULT_PORTS:
        return None
    host = f"[{host}]" if ":" in host else host
    return host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
