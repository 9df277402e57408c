"""Middleware for every request: a request id, metrics, a log line, security headers."""

import re
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.metrics import HttpMetrics
from app.core.platform import tracing
from app.core.platform.logs import bind_task

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_UNLOGGED = ("/livez", "/readyz", "/metrics", "/v2/health/live", "/v2/health/ready")
# For responses that a browser opens directly, such as an SVG: they load and run nothing.
_CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
_SECURITY_HEADERS = {
    "Content-Security-Policy": _CONTENT_POLICY,  # pages set their own
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # `no-referrer` might make our own page send a null Origin
    "Cross-Origin-Resource-Policy": "same-origin",  # other sites cannot embed it
    "Cross-Origin-Opener-Policy": "same-origin",
}
log = structlog.get_logger()


class RequestContext:
    """Gives each request an id, and records it in metrics, traces and the log."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        exchange = _Exchange(receive, send, request_id)
        # Each request has a task of its own; what is logged after us belongs to it, too.
        structlog.contextvars.clear_contextvars()
        bind_task(request_id=request_id)
        with self._metrics.in_flight.track_inprogress(), _traced(scope, headers) as span:
            if span is not None:
                exchange.trace = trace = tracing.traceparent()
                bind_task(trace_id=tracing.trace_id_of(trace))
            try:
                await self._app(scope, exchange.receive, exchange.send)
            finally:
                self._record(scope, exchange, span)

    def _record(self, scope: Scope, exchange: "_Exchange", span: "Span | None") -> None:
        method, route = scope["method"], getattr(scope.get("route"), "path", "unmatched")
        status, seconds = exchange.status, time.perf_counter() - exchange.started
        self._metrics.observe(method, route, status, seconds, exchange.received, exchange.sent)
        if route not in _UNLOGGED:
            # The path without its query, which may hold private data.
            ms = round(seconds * 1000, 1)
            log.info(
                "request", method=method, route=route, path=scope["path"], status=status, ms=ms
            )
        if span is not None:
            tracing.describe_response(span, method, route, status, exchange.request_id)


class _Exchange:
    """Counts the bytes of one request and response, and adds the ids to the response."""

    def __init__(self, receive: Receive, send: Send, request_id: str) -> None:
        self._receive = receive
        self._send = send
        self.request_id = request_id
        self.trace: str | None = None
        self.started = time.perf_counter()
        self.status = 500
        self.received = self.sent = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.request_id
            if self.trace is not None:
                headers["traceparent"] = self.trace
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)


def _traced(scope: Scope, headers: Headers) -> AbstractContextManager["Span | None"]:
    return nullcontext() if scope["path"] in _UNLOGGED else tracing.request_span(headers)


class SecurityHeaders:
    """Sets these headers on every response, unless the route has set them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
