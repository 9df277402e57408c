"""Parses untrusted JSON with limits, and refuses values that the database cannot store."""

import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

from app.core.platform.errors import ModelFileInvalid

_MAX_DEPTH = 32
_MAX_VALUES = 500_000  # a cluster takes five; a small value costs up to 200 bytes of memory
_BEFORE_VALUES = (b",", b":", b"[", b"{")


def parse_json(name: str, data: bytes) -> dict[str, Any]:
    """The object in the member `name`; raises ModelFileInvalid for anything else."""
    if sum(map(data.count, _BEFORE_VALUES)) > _MAX_VALUES:
        raise ModelFileInvalid(f"{name} has more than {_MAX_VALUES:,} values.")
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:  # a RecursionError has no useful text
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ModelFileInvalid(f"{name} is not JSON: {reason}") from error
    if not isinstance(value, dict):
        raise ModelFileInvalid(f"{name} must be a JSON object.")
    _check(name, value)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _check(name: str, root: dict[str, Any]) -> None:
    open_values: list[Iterator[Any]] = [iter([root])]
    while open_values:
        for value in open_values[-1]:
            if isinstance(value, str) and not _storable(value):
                raise ModelFileInvalid(f"{name} has a string that cannot be stored.")
            if isinstance(value, float) and not math.isfinite(value):
                raise ModelFileInvalid(f"{name} has a number that is too large.")
            if isinstance(value, dict | list):
                inner = chain.from_iterable(value.items()) if isinstance(value, dict) else value
                open_values.append(iter(inner))
                break
        else:
            open_values.pop()
        if len(open_values) > _MAX_DEPTH + 1:
            raise ModelFileInvalid(f"{name} is nested deeper than {_MAX_DEPTH} levels.")


def _storable(text: str) -> bool:
    """False for a zero byte, which PostgreSQL refuses, and for an unpaired surrogate."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
