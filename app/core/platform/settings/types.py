"""Units of bytes, and types of settings that are lists or addresses."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB


def _split(value: Any) -> Any:
    """Splits the text of a variable, `a, b`, into a list."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Folders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split)]


def _check_url_base(url: str) -> str:
    """Removes the slash at the end, so that a path can be appended."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if url and (not usable or parts.query or parts.fragment or not url.isprintable()):
        raise ValueError("must look like https://temi.example.org, without `?` and `#`")
    return url.rstrip("/")


UrlBase = Annotated[str, AfterValidator(_check_url_base)]
