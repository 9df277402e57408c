"""Checks the cost of decoding an image by its header."""

import re
from dataclasses import dataclass

from PIL import Image

from app.core.platform.errors import ImageTooLarge, ImageUndecodable

MiB = 1024 * 1024
# Photos have about ten; each is a pass over the whole image, even if it has few bytes.
MAX_JPEG_SCANS = 100

_MODE_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
_OTHER_MODE_BYTES = 4  # Pillow stores RGB in four bytes, too
# Measured at 49 megapixels: these decoders keep several copies of the image.
_FORMAT_BYTES = {"WEBP": 16.0, "AVIF": 9.0, "HEIF": 5.0}

_START_OF_SCAN = b"\xff\xda"
# A marker within compressed data: not an escaped 0xFF, a restart, TEM or a fill byte.
_NEXT_MARKER = re.compile(rb"\xff[\x02-\xcf\xd8-\xfe]")
_END_OF_IMAGE = 0xD9


# A JPEG within these limits takes some milliseconds and little memory, whatever its data. Metadata
# count, too: Pillow copies what they point to, and they may point to the same bytes many times.
_CHEAP_BYTES = 256 * 1024  # larger ones are faster in another process
_CHEAP_HEADER_BYTES = 16 * 1024
_CHEAP_PIXELS = 4_000_000  # of all scans together
# Start-of-frame markers, with the image size; the three others of the range are tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SEGMENTS = _FRAMES | {0xC4, 0xCC, *range(0xDA, 0xF0), 0xFE}


@dataclass(frozen=True, kw_only=True)
class DecodeLimits:
    """Limits for one image. The memory is that of its pixels and of the decoder's buffers."""

    pixels: int = 50_000_000
    bytes: int = 300 * MiB
    seconds: float = 10.0


def check_webp_size(data: bytes, limits: DecodeLimits) -> None:
    """Call it before the file is opened: the decoder allocates its canvas at once."""
    size = _webp_size(data)
    if size is not None:
        check_pixels(*size, limits)
        check_memory("WEBP", "RGBA", *size, limits)


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind, head = data[12:16], data[20:30]
    if len(head) < 10:
        return None
    if kind == b"VP8X":
        return int.from_bytes(head[4:7], "little") + 1, int.from_bytes(head[7:10], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[1:5], "little")
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = (int.from_bytes(head[at : at + 2], "little") for at in (6, 8))
        return width & 0x3FFF, height & 0x3FFF
    return None


def check_opened(opened: Image.Image, data: bytes, format_: str, limits: DecodeLimits) -> None:
    """Raises ImageRejected if decoding would exceed the limits; decodes nothing."""
    width, height = opened.size
    check_pixels(width, height, limits)
    if format_ == "JPEG":
        _check_jpeg(opened, data, limits)
    else:
        check_memory(format_, opened.mode, width, height, limits)


def check_pixels(width: int, height: int, limits: DecodeLimits) -> None:
    if width * height > limits.pixels:
        raise ImageTooLarge(
            f"{width} x {height} pixels; at most {limits.pixels / 1e6:g} megapixels are accepted."
        )


def check_memory(format_: str, mode: str, width: int, height: int, limits: DecodeLimits) -> None:
    each = _FORMAT_BYTES.get(format_, _MODE_BYTES.get(mode, _OTHER_MODE_BYTES))
    _check_bytes(format_, width, height, each * width * height, limits)


def _check_bytes(
    format_: str, width: int, height: int, needed: float, limits: DecodeLimits
) -> None:
    if needed > limits.bytes:
        raise ImageTooLarge(
            f"{format_} of {width} x {height} pixels needs {needed / MiB:.0f} MiB to decode; at "
            f"most {limits.bytes / MiB:.0f} MiB are allowed. Send a smaller one."
        )


def _check_jpeg(opened: Image.Image, data: bytes, limits: DecodeLimits) -> None:
    """Several scans need memory for all coefficients, two bytes each; one scan for a few rows."""
    scans = count_scans(data)
    if scans > MAX_JPEG_SCANS:
        raise ImageUndecodable(
            f"The JPEG has more than {MAX_JPEG_SCANS} scans, which would take too long to decode. "
            "Save it again as an ordinary JPEG."
        )
    if scans > 1:
        layers: list[tuple[int, int, int, int]] = getattr(opened, "layer", [])
        width, height = opened.size
        across, down = (max((layer[i] for layer in layers), default=1) for i in (1, 2))
        share = sum(layer[1] * layer[2] for layer in layers) / max(1, across * down)
        _check_bytes("JPEG in several scans", width, height, 2 * share * width * height, limits)


def count_scans(data: bytes) -> int:
    """The number of scans of a JPEG's main image, up to one more than allowed."""
    if data.count(_START_OF_SCAN) <= 1:  # much faster, and true of most
        return 1
    at, scans = 2, 0
    while scans <= MAX_JPEG_SCANS:
        found = _NEXT_MARKER.search(data, at)
        if found is None or data[found.end() - 1] == _END_OF_IMAGE:
            break
        scans += found[0] == _START_OF_SCAN
        # Previews within metadata have their own scans: segments are skipped.
        at = found.end() + int.from_bytes(data[found.end() : found.end() + 2])
    return scans


def is_cheap_jpeg(data: bytes) -> bool:
    """Whether decoding is bounded and costs less than sending the image to another process."""
    if len(data) > _CHEAP_BYTES or not data.startswith(b"\xff\xd8"):
        return False
    at, pixels = 2, 0
    while at < _CHEAP_HEADER_BYTES and at + 9 <= len(data):
        marker, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if data[at] != 0xFF or marker not in _SEGMENTS or size < 2:
            return False
        if marker == _START_OF_SCAN[1]:
            # Previews count, too; compressed data cannot contain these two bytes.
            return 0 < pixels * data.count(_START_OF_SCAN) <= _CHEAP_PIXELS
        if marker in _FRAMES:
            if pixels:
                return False
            pixels = int.from_bytes(data[at + 5 : at + 7]) * int.from_bytes(data[at + 7 : at + 9])
        at += 2 + size
    return False


def has_more_frames(opened: Image.Image) -> bool:
    """Checks only for a second frame: counting all may take much longer than decoding."""
    return bool(getattr(opened, "is_animated", False))
