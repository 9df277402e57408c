"""Unpacks a model file in a separate process."""

import tempfile
from pathlib import Path

from app.core.models.package.unpacking import unpack
from app.core.platform.errors import ServiceError
from app.core.storage.local import LocalStorage

unpacked = "unpacked"


def unpack_file(path: str) -> str:
    """Code and detail of the error, or `accepted`."""
    with tempfile.TemporaryDirectory() as folder, Path(path).open("rb") as file:
        try:
            unpack(file, LocalStorage(Path(folder)), "models/imp", None)
        except ServiceError as error:
            return f"{error.code}: {error.detail}"
    return unpacked
