"""JSON from strangers: nothing in it that a database or a later answer could not hold."""

import json
import math
from typing import Any

from app.core.errors import ModelFileInvalid

_DEPTH = 32


def parse_json(name: str, data: bytes) -> dict[str, Any]:
    """The object in the member `name`; raises ModelFileInvalid for anything else."""
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
    waiting: list[tuple[Any, int]] = [(root, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _DEPTH:
            raise ModelFileInvalid(f"{name} is nested deeper than {_DEPTH} levels.")
        if isinstance(value, dict):
            waiting += ((part, depth + 1) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            waiting += ((part, depth + 1) for part in value)
        elif isinstance(value, str) and not _storable(value):
            raise ModelFileInvalid(f"{name} holds a text that cannot be stored.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ModelFileInvalid(f"{name} holds a number that is too large.")


def _storable(text: str) -> bool:
    """No zero byte, which PostgreSQL refuses, and no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
