"""What the client likes best of what we can send, and what it has already (RFC 9110)."""

from collections.abc import Sequence
from typing import NamedTuple

from app.core.platform.errors import NotAcceptable


class _Range(NamedTuple):
    kind: str  # type/subtype, type/* or */*
    quality: float

    def specificity(self, media_type: str) -> int:
        """How exactly it names the media type; 0 if not at all."""
        if self.kind == media_type:
            return 3
        if self.kind == f"{media_type.partition('/')[0]}/*":
            return 2
        return int(self.kind == "*/*")


def choose_media_type(accept: str, offered: Sequence[str]) -> str:
    """The best of those offered; the first of them if the client does not care."""
    if not accept.strip():
        return offered[0]
    ranges = [_parse(part) for part in accept.split(",") if part.strip()]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) <= 0:
        raise NotAcceptable(f"This can be sent as {', '.join(offered)}; Accept names none of them.")
    return best


def is_known(if_none_match: str | None, tag: str) -> bool:
    """The client names, among others, the version that it would get."""
    held = {part.strip().removeprefix("W/") for part in (if_none_match or "").split(",")}
    return bool(held & {tag, "*"})


def _quality(media_type: str, ranges: Sequence[_Range]) -> float:
    """That of the range which names it most exactly."""
    matching = [(r.specificity(media_type), r.quality) for r in ranges]
    exactness, quality = max(matching, default=(0, 0.0))
    return quality if exactness else 0.0


def _parse(part: str) -> _Range:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            quality = _number(value.strip())
    return _Range(kind, quality)


def _number(text: str) -> float:
    """A quality that is none counts as not wanted."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value <= 1 else 0.0
