"""Limits on the body of a request: media types, length and time."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.types import Message, Receive

from app.core.platform.errors import BodyTimeout, BodyTooLarge, UnsupportedMediaType
from app.core.platform.settings import Settings

_JSON = "application/json"
MAX_JSON_VALUES = 30_000  # no list of a request may have more than 25,000 items
# By method and route; every other route takes `max_json_bytes`.
_LIMITS = {
    ("POST", "/v1/datasets"): "max_body_bytes",
    ("POST", "/v1/datasets/{dataset_id}/images"): "max_body_bytes",
    ("POST", "/v1/datasets/{dataset_id}:search"): "max_predict_bytes",
    ("POST", "/v1/uploads"): "max_body_bytes",
    ("PATCH", "/v1/uploads/{upload_id}"): "max_body_bytes",
    ("POST", "/v1/models:import"): "max_model_bytes",
    ("POST", "/v1/models/{name}:predict"): "max_predict_bytes",
    ("POST", "/v1/models/{name}/versions/{version}:predict"): "max_predict_bytes",
    ("POST", "/v1/label-studio/{model}/predict"): "max_predict_bytes",
    ("POST", "/v2/models/{model}/infer"): "max_predict_bytes",
    ("POST", "/v2/models/{model}/versions/{version}/infer"): "max_predict_bytes",
}
_INFERENCE = "/v2/"
_DEFAULT_LIMIT = "max_json_bytes"


@dataclass(frozen=True)
class BodyRules:
    """The limits of one route. `media_types` are those that its OpenAPI entry declares."""

    media_types: frozenset[str]
    limit_setting: str
    is_json: bool  # FastAPI parses the whole body
    requires_type: bool  # clients of the Open Inference Protocol send no Content-Type

    @classmethod
    def of(cls, route: APIRoute) -> "BodyRules":
        (method,) = route.methods or {"GET"}
        return cls(
            media_types=_declared_types(route),
            limit_setting=_LIMITS.get((method, route.path), _DEFAULT_LIMIT),
            is_json=route.body_field is not None,
            requires_type=not route.path.startswith(_INFERENCE),
        )

    def limit(self, settings: Settings) -> int:
        limit: int = getattr(settings, self.limit_setting)
        return limit

    def check(self, request: Request) -> None:
        """Checks the headers; the bytes are counted as they arrive."""
        given = media_type_of(request)
        is_known = given in self.media_types or not (given or self.requires_type)
        if self.media_types and not is_known:
            expected = ", ".join(sorted(self.media_types))
            raise UnsupportedMediaType(
                f"Send {expected}; the Content-Type is {given or 'missing'}."
            )
        limit = self.limit(request.app.state.runtime.settings)
        declared = request.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
            raise _too_large(limit)


def media_type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def has_body(request: Request) -> bool:
    """By its headers. A Content-Type alone counts, too."""
    headers = request.headers
    return (
        headers.get("content-length", "0") != "0"
        or "transfer-encoding" in headers
        or "content-type" in headers
    )


def limit_body(request: Request, rules: BodyRules) -> Request:
    """Returns the same request with a body that raises if it is too long or too slow."""
    settings: Settings = request.app.state.runtime.settings
    receive = _LimitedReceive(request.receive, rules.limit(settings), settings)
    return Request(request.scope, receive)


class _LimitedReceive:
    """Counts the bytes that arrive: the declared length may be missing or wrong.

    Only the time that is spent waiting for the client counts, not our own.
    """

    def __init__(self, receive: Receive, limit: int, settings: Settings) -> None:
        self._receive = receive
        self._limit = limit
        self._rate = settings.body_bytes_per_second
        self._seconds = settings.body_seconds  # left, if nothing more arrives
        self._received = 0
        self._is_complete = False

    async def __call__(self) -> Message:
        if self._is_complete:
            return await self._receive()  # waits for the disconnect, which may take any time
        started = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self._seconds)):
                message = await self._receive()
        except TimeoutError:
            raise _too_slow(self._received, self._rate) from None
        size = len(message.get("body", b""))
        self._seconds += size / self._rate - (time.monotonic() - started)
        self._received += size
        self._is_complete = not message.get("more_body", False)
        if self._received > self._limit:
            raise _too_large(self._limit)
        return message


def _declared_types(route: APIRoute) -> frozenset[str]:
    if route.body_field is not None:
        return frozenset([_JSON])
    described: dict[str, Any] = (route.openapi_extra or {}).get("requestBody", {})
    return frozenset(described.get("content", ()))


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body has more than {limit:,} bytes, the limit of this route.")


def _too_slow(received: int, rate: int) -> BodyTimeout:
    return BodyTimeout(
        f"The body stopped or was too slow: {received:,} bytes arrived, and {rate:,} bytes per "
        "second are required. Use a faster connection, or send it in parts by `/v1/uploads`."
    )
