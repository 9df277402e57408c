"""Base class of the resources, and helpers for requests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from temi_client.transport import Transport

T = TypeVar("T", bound=BaseModel)

_PAGE = 200


class Resource:
    """A mixin of the client, which sets the transport."""

    _transport: Transport

    def _get(self, model: type[T], path: str, **params: Any) -> T:
        response = self._transport.send("GET", path, params=without_none(params))
        return model.model_validate_json(response.content)

    def _post(
        self,
        model: type[T],
        path: str,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        response = self._transport.send("POST", path, json=json, headers=dict(headers or {}))
        return model.model_validate_json(response.content)

    def _delete(self, path: str) -> None:
        self._transport.send("DELETE", path)

    def _pages(self, model: type[T], path: str, **filters: Any) -> Iterator[T]:
        params = without_none(filters)
        cursor: str | None = None
        while True:
            query = {"limit": _PAGE, **params, **({"cursor": cursor} if cursor else {})}
            page = self._transport.send("GET", path, params=query).json()
            for item in page["data"]:
                yield model.model_validate(item)
            cursor = page.get("next_cursor")
            if not cursor or not page.get("has_more"):
                return


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that are not None; the service has defaults for the others."""
    return {name: value for name, value in values.items() if value is not None}


def idempotency_header(key: str | None) -> dict[str, str]:
    """Returns the header; without a key, a new one per call, which all its retries share."""
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def path_segment(value: str | int) -> str:
    """Quotes a value for a path, so that a slash in it does not reach another route."""
    return quote(str(value), safe="@")
