"""Tells images from the other files of a photo export, such as sidecars and videos."""

from pathlib import PurePosixPath

from app.core.datasets.images import sniff
from app.core.datasets.skipped import OTHER
from app.core.datasets.sources.base import is_system_file
from app.core.platform.errors import ImageRejected

SYSTEM, NO_SUFFIX = "system", "no suffix"
_MAX_SUFFIX = 12
_IMAGE_SUFFIXES = frozenset(
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib"),
        *(".tif", ".tiff", ".heic", ".heif", ".hif", ".avif", ".mpo"),
        # Images that the decoders do not read: users want to know which ones are missing.
        *(".svg", ".psd", ".jp2", ".jxl", ".ico", ".tga", ".exr", ".hdr", ".raw", ".dng"),
        *(".cr2", ".cr3", ".nef", ".arw", ".orf", ".raf", ".rw2", ".pef", ".srw"),
    }
)


def skip_reason(name: str, data: bytes | None) -> str | None:
    """Why a file is skipped: its suffix or a word. None for one that is or claims to be an image.

    The content decides, then the suffix. `data` is None for a file that cannot be read; it may be
    an image if it has no suffix.
    """
    if is_system_file(name):
        return SYSTEM
    if data is not None and _is_image(data):
        return None
    suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    if suffix in _IMAGE_SUFFIXES:
        return None
    if not suffix:
        return None if data is None else NO_SUFFIX
    return suffix if suffix[1:].isalnum() and len(suffix) <= _MAX_SUFFIX else OTHER


def _is_image(data: bytes) -> bool:
    try:
        return bool(sniff(data))
    except ImageRejected:
        return False
