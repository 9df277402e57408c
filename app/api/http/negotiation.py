"""Content negotiation and conditional requests (RFC 9110)."""

from collections.abc import Sequence
from typing import NamedTuple

from app.core.platform.errors import NotAcceptable


class _Range(NamedTuple):
    kind: str  # type/subtype, type/* or */*
    quality: float

    def specificity(self, media_type: str) -> int:
        """How specifically it matches the media type; 0 if it does not."""
        if self.kind == media_type:
            return 3
        if self.kind == f"{media_type.partition('/')[0]}/*":
            return 2
        return int(self.kind == "*/*")


def choose_media_type(accept: str, offered: Sequence[str]) -> str:
    """Returns the offered type that the client prefers, by default the first."""
    if not accept.strip():
        return offered[0]
    ranges = [_parse(part) for part in accept.split(",") if part.strip()]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) <= 0:
        raise NotAcceptable(
            f"Accept is {accept[:200]!r}; it must contain one of {', '.join(offered)}."
        )
    return best


def matches_etag(if_none_match: str | None, tag: str) -> bool:
    """Whether If-None-Match contains the ETag, so that the response is 304."""
    tags = {part.strip().removeprefix("W/") for part in (if_none_match or "").split(",")}
    return bool(tags & {tag, "*"})


def _quality(media_type: str, ranges: Sequence[_Range]) -> float:
    """The quality of the most specific range that matches."""
    matching = [(r.specificity(media_type), r.quality) for r in ranges]
    specificity, quality = max(matching, default=(0, 0.0))
    return quality if specificity else 0.0


def _parse(part: str) -> _Range:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            quality = _number(value.strip())
    return _Range(kind, quality)


def _number(text: str) -> float:
    """An invalid quality counts as 0."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value <= 1 else 0.0
