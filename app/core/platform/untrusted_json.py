"""JSON from strangers: nothing in it that a database or a later answer could not hold."""

import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

from app.core.platform.errors import ModelFileInvalid

_DEPTH = 32
_VALUES = (
    500_000  # a cluster takes five; each value costs up to 200 bytes of memory, if it is small
)
_BEFORE_VALUES = (b",", b":", b"[", b"{")


def parse_json(name: str, data: bytes) -> dict[str, Any]:
    """The object in the member `name`; raises ModelFileInvalid for anything else."""
    if sum(map(data.count, _BEFORE_VALUES)) > _VALUES:
        raise ModelFileInvalid(f"{name} holds more than {_VALUES:,} values.")
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:  # a RecursionError has no useful text
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ModelFileInvalid(f"{name} is not JSON: {reason}") from error
    if not isinstance(value, dict):
        raise ModelFileInvalid(f"{name} must hold a JSON object.")
    _check(name, value)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _check(name: str, root: dict[str, Any]) -> None:
    open_values: list[Iterator[Any]] = [iter([root])]
    while open_values:
        for value in open_values[-1]:
            if isinstance(value, str) and not _storable(value):
                raise ModelFileInvalid(f"{name} holds a text that cannot be stored.")
            if isinstance(value, float) and not math.isfinite(value):
                raise ModelFileInvalid(f"{name} holds a number that is too large.")
            if isinstance(value, dict | list):
                inner = chain.from_iterable(value.items()) if isinstance(value, dict) else value
                open_values.append(iter(inner))
                break
        else:
            open_values.pop()
        if len(open_values) > _DEPTH + 1:
            raise ModelFileInvalid(f"{name} is nested deeper than {_DEPTH} levels.")


def _storable(text: str) -> bool:
    """No zero byte, which PostgreSQL refuses, and no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
