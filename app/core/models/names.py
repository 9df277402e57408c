"""Valid names of models and aliases, and references to versions."""

import re
from typing import NamedTuple

from app.core.platform.errors import InvalidRequest

LATEST = "latest"  # always the newest version; cannot be set
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_ALIAS = re.compile(r"[a-z][a-z0-9._-]{0,63}")
_NUMBERED = re.compile(r"(?P<name>[^/@]+)/versions/(?P<version>[0-9]{1,9})")


class Reference(NamedTuple):
    name: str
    alias: str = LATEST
    version: int | None = None  # takes precedence over the alias


def slug(text: str) -> str:
    """A valid model name from any text."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:100] or "model"


def check_name(name: str, field: str = "model_name") -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest.field(
            field,
            "use 1 to 100 of a-z, 0-9, '.', '_', '-', starting with a letter or digit, "
            f"not {name[:200]!r}",
        )
    return name


def check_alias(alias: str) -> None:
    if not _ALIAS.fullmatch(alias) or alias == LATEST:
        raise InvalidRequest.field(
            "alias",
            "use up to 64 of a-z, 0-9, '.', '_', '-', starting with a letter, and not `latest`; "
            f"this is {alias[:100]!r}",
        )


def parse_reference(text: str) -> Reference:
    """`name`, `name@alias` or `name/versions/N`."""
    if (numbered := _NUMBERED.fullmatch(text)) is not None:
        return Reference(numbered["name"], version=int(numbered["version"]))
    name, _, alias = text.partition("@")
    return Reference(name, alias or LATEST)
