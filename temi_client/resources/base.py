"""What the methods of every resource stand on."""

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
    """Mixed into the client, which brings the transport."""

    _transport: Transport

    def _get(self, answer: type[T], path: str, **params: Any) -> T:
        response = self._transport.send("GET", path, params=given(params))
        return answer.model_validate_json(response.content)

    def _post(
        self,
        answer: type[T],
        path: str,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        response = self._transport.send("POST", path, json=json, headers=dict(headers or {}))
        return answer.model_validate_json(response.content)

    def _delete(self, path: str) -> None:
        self._transport.send("DELETE", path)

    def _pages(self, answer: type[T], path: str, **filters: Any) -> Iterator[T]:
        params = given(filters)
        cursor: str | None = None
        while True:
            asked = {"limit": _PAGE, **params, **({"cursor": cursor} if cursor else {})}
            page = self._transport.send("GET", path, params=asked).json()
            for item in page["data"]:
                yield answer.model_validate(item)
            cursor = page.get("next_cursor")
            if not cursor or not page.get("has_more"):
                return


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is None is left to the service."""
    return {name: value for name, value in values.items() if value is not None}


def idempotency(key: str | None) -> dict[str, str]:
    """One key a call: its retries are the same request, the next call is another one."""
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def part(value: str | int) -> str:
    """A value as one piece of a path: a slash in it must not reach another route."""
    return quote(str(value), safe="@")
