"""Decodes image bytes. Every error of the decoders becomes an ImageRejected."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pillow_heif
from PIL import (  # noqa: F401 - else Pillow searches the plugins at the first image
    AvifImagePlugin,
    Image,
    MpoImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from app.core.datasets.decoding.headers import (
    DecodeLimits,
    check_opened,
    check_pixels,
    check_webp_size,
    has_more_frames,
)
from app.core.datasets.decoding.pixels import UprightPixels
from app.core.platform.errors import ImageRejected, ImageUndecodable, UnsupportedFormat
from temi.backbones.cropping import CentralSquare

# Pillow's own limit only warns up to twice its value; the header is checked instead.
Image.MAX_IMAGE_PIXELS = None
pillow_heif.register_heif_opener(thumbnails=False)

LIMITS = DecodeLimits()
_SNIFF_BYTES = 512
_MAGIC = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
}
# A text may start with BM, too; the size of the second header tells a bitmap.
_BMP_HEADER_SIZES = {size.to_bytes(4, "little") for size in (12, 16, 40, 52, 56, 64, 108, 124)}
MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "WEBP": "image/webp",
    "HEIF": "image/heif",
    "AVIF": "image/avif",
}
# Brands of the `ftyp` box that HEIF, AVIF and other formats (such as videos) start with.
_AVIF_BRANDS = {b"avif", b"avis"}
_HEIF_BRANDS = {
    *(b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"),
    *(b"mif1", b"msf1"),
}
_ARRAY_MODES = {"L", "RGB", "RGBA"}
_UNSUPPORTED = (b"%PDF", b"8BPS", b"%!PS", b"\xc5\xd0\xd3\xc6")


@dataclass(frozen=True)
class DecodedImage:
    image: Image.Image  # RGB, upright
    format: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    width: int  # upright
    height: int
    format: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Decoded:
    pixels: UprightPixels
    facts: ImageFacts


def decode_image(
    data: bytes, *, limits: DecodeLimits = LIMITS, at_least: int | None = None
) -> DecodedImage:
    """Decodes bytes to an upright RGB image; raises ImageRejected.

    With `at_least`, a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, with no side shorter than
    that: much faster if the image is reduced anyway.

    Only the header bounds time and memory: use a `DecoderPool` for untrusted images.
    """
    with _decoded(data, limits, at_least) as decoded:
        return DecodedImage(decoded.pixels.whole(), decoded.facts.format, decoded.facts.notes)


def inspect_image(data: bytes, *, limits: DecodeLimits = LIMITS) -> ImageFacts:
    """Decodes everything, so that damaged images are refused; returns size and format.

    A JPEG is decoded at 1/8 of its size, which reads all its data with less time and memory.
    """
    with _decoded(data, limits, at_least=1) as decoded:
        decoded.pixels.check()
        return decoded.facts


def cut_square(
    data: bytes, square: CentralSquare, *, limits: DecodeLimits = LIMITS
) -> npt.NDArray[np.uint8]:
    """The part that a backbone uses, (side, side, 3); see `Preprocessing.fill`."""
    with _decoded(data, limits, square.decode_side) as decoded:
        return np.array(decoded.pixels.square(square))


def make_thumbnail(data: bytes, size: int, *, limits: DecodeLimits = LIMITS) -> bytes:
    """A WebP no larger than `size` on its longer side."""
    with _decoded(data, limits, at_least=2 * size) as decoded:
        small = _shrink(decoded.pixels, size)
    out = io.BytesIO()
    small.save(out, "WEBP", quality=82, method=4)
    return out.getvalue()


def _shrink(pixels: UprightPixels, size: int) -> Image.Image:
    """Like Pillow's `thumbnail`, but without a copy of the whole image."""
    width, height = pixels.size
    scale = min(1.0, size / max(width, height))
    wanted = (max(1, round(width * scale)), max(1, round(height * scale)))
    factor = max(1, int(min(width / wanted[0], height / wanted[1]) / 2))
    reduced = pixels.reduced((0, 0, width, height), factor)
    box = (0, 0, width / factor, height / factor)  # the last reduced pixel may be partial
    return reduced.resize(wanted, Image.Resampling.LANCZOS, box=box)


def sniff(data: bytes) -> str:
    """The format by the first bytes; names and declared types are not trusted."""
    if not data:
        raise ImageUndecodable("The file is empty.")
    head = data[:_SNIFF_BYTES]
    for magic, format_ in _MAGIC.items():
        if head.startswith(magic):
            return format_
    if head.startswith(b"BM") and head[14:18] in _BMP_HEADER_SIZES:
        return "BMP"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WEBP"
    if head[4:8] == b"ftyp" and (by_brand := _by_brand(head)):
        return by_brand
    if head.startswith(_UNSUPPORTED) or b"<svg" in head.lower():
        raise UnsupportedFormat(f"Not one of the accepted formats: {', '.join(MEDIA_TYPES)}.")
    if _is_text(head):
        raise ImageUndecodable("The file is text, not an image.")
    raise UnsupportedFormat(f"Unknown format; accepted are {', '.join(MEDIA_TYPES)}.")


@contextmanager
def _decoded(data: bytes, limits: DecodeLimits, at_least: int | None) -> Iterator[_Decoded]:
    """Turns errors of the decoders, also in the caller's block, into ImageRejected."""
    format_ = sniff(data)
    try:
        if format_ == "WEBP":
            check_webp_size(data, limits)
        with Image.open(io.BytesIO(data), formats=[format_]) as opened:
            check_opened(opened, data, format_, limits)
            whole, notes = opened.size, _notes(opened, format_)
            pixels = _load(opened, data, format_, at_least)
            check_pixels(*pixels.size, limits)  # a HEIF may be larger than its header says
            width, height = pixels.upright(whole) if format_ == "JPEG" else pixels.size
            facts = ImageFacts(width=width, height=height, format=format_, notes=notes)
            yield _Decoded(pixels, facts)
    except ImageRejected:
        raise
    except MemoryError as error:
        allowed = f"{limits.bytes / 2**20:.0f} MiB"
        raise ImageUndecodable(f"The {format_} needs more than {allowed} to decode.") from error
    except Exception as error:  # Pillow raises many kinds of errors on damaged files
        reason = str(error) or type(error).__name__
        raise ImageUndecodable(f"The {format_} data is damaged: {reason[:200]}") from error


def _notes(opened: Image.Image, format_: str) -> list[str]:
    if not has_more_frames(opened):
        return []
    if format_ == "HEIF":  # opened at its main image
        return ["several images: main one used"]
    opened.seek(0)
    return ["animated: first frame used"]


def _load(opened: Image.Image, data: bytes, format_: str, at_least: int | None) -> UprightPixels:
    if format_ == "HEIF":
        # The decoder's own array: the Pillow image would be a copy, a third larger.
        main = pillow_heif.open_heif(data)
        mode, (width, _) = main.mode, main.size
        if mode in _ARRAY_MODES:
            return UprightPixels.of_array(np.asarray(main)[:, :width], mode)
    if at_least is not None:
        opened.draft("RGB", (at_least, at_least))
    opened.load()
    return UprightPixels.of_image(opened)


def _by_brand(head: bytes) -> str | None:
    """The major brand decides; for a generic one the compatible brands do."""
    size = int.from_bytes(head[:4])
    main = head[8:12]
    brands = {main, *(head[at : at + 4] for at in range(16, min(size, len(head)), 4))}
    if main in _AVIF_BRANDS or (main in (b"mif1", b"msf1") and brands & _AVIF_BRANDS):
        return "AVIF"
    return "HEIF" if brands & _HEIF_BRANDS else None


def _is_text(head: bytes) -> bool:
    try:
        return head.decode("utf-8").isprintable() or all(b >= 32 or b in b"\t\n\r\f" for b in head)
    except UnicodeDecodeError as error:
        # the end of the head may split a character
        return error.start > len(head) - 4 and _is_text(head[: error.start])
