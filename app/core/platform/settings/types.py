"""Units of bytes, and types of settings that are lists."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator
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
