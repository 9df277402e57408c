"""Around every request: a request id, a bound on the body, a metric and a log line."""

import re
import time
from contextlib import suppress
from uuid import uuid4

import structlog
from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import problem
from app.api.metrics import HttpMetrics
from app.core.errors import BodyTooLarge
from app.core.settings import MiB, Settings

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_UPLOADS = re.compile(r"/v1/datasets(/[^/]+/images)?|/v1/uploads(/[^/]+)?")
_OTHER_BODIES = 1 * MiB  # JSON requests
_QUIET = ("/livez", "/readyz", "/metrics")
log = structlog.get_logger()


class RequestContext:
    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status, received, sent, started = 500, 0, 0, time.perf_counter()

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def send_with_id(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            else:
                sent += len(message.get("body", b""))
            await send(message)

        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            self._metrics.in_flight.track_inprogress(),
        ):
            try:
                await self._app(scope, counted, send_with_id)
            finally:
                seconds = time.perf_counter() - started
                route = getattr(scope.get("route"), "path", "unmatched")
                method = scope["method"]
                self._metrics.observe(method, route, status, seconds, received, sent)
                _log(scope, route, status, seconds)


def _log(scope: Scope, route: str, status: int, seconds: float) -> None:
    """The path without its query: that may hold what is nobody's business."""
    if route not in _QUIET:
        log.info(
            "request",
            method=scope["method"],
            route=route,
            path=scope["path"],
            status=status,
            ms=round(seconds * 1000, 1),
        )


class BodyLimit:
    """Counts the bytes that really arrive: a declared length may be missing or a lie."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope)
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and int(declared) > limit:
            await self._refuse(scope, receive, send, limit)
            return
        received, exceeded, started = 0, False, False

        async def counted() -> Message:
            nonlocal received, exceeded
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                exceeded = True
                raise BodyTooLarge(_too_large(limit))
            return message

        async def send_unless_exceeded(message: Message) -> None:
            # Form and JSON parsing turn the error above into one of their own.
            nonlocal started
            if exceeded and not started:
                return
            started = True
            await send(message)

        with suppress(BodyTooLarge):
            await self._app(scope, counted, send_unless_exceeded)
        if exceeded and not started:
            await self._refuse(scope, receive, send, limit)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        answer = problem(Request(scope), 413, BodyTooLarge.code, _too_large(limit))
        await answer(scope, receive, send)

    def _limit(self, scope: Scope) -> int:
        if _UPLOADS.fullmatch(scope["path"]):
            return self._settings.max_body_bytes
        if scope["path"].endswith(":predict"):
            return self._settings.max_predict_bytes
        return _OTHER_BODIES


def _too_large(limit: int) -> str:
    return f"The body is larger than the {limit:,} bytes that this service accepts here."
