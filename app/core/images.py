"""The one border where image bytes are decoded. Nothing but ImageRejected leaves it."""

import io
from dataclasses import dataclass, field

import numpy as np
import pillow_heif
from PIL import Image, ImageOps

from app.core.errors import ImageRejected, ImageTooLarge, ImageUndecodable, UnsupportedFormat

# Pillow's own guard only warns up to twice its limit; the header is checked below instead.
Image.MAX_IMAGE_PIXELS = None
pillow_heif.register_heif_opener(thumbnails=False)

MAX_PIXELS = 50_000_000
_SNIFF_BYTES = 512
_MAGIC = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
}
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
# Brands of the box that HEIF, AVIF and much else (such as films) start with.
_AVIF_BRANDS = {b"avif", b"avis"}
_HEIF_BRANDS = {
    *(b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"),
    *(b"mif1", b"msf1"),
}
_FOREIGN = (b"%PDF", b"8BPS", b"%!PS", b"\xc5\xd0\xd3\xc6")


@dataclass(frozen=True)
class DecodedImage:
    image: Image.Image  # RGB, upright
    format: str
    notes: list[str] = field(default_factory=list)


def decode_image(
    data: bytes, *, max_pixels: int = MAX_PIXELS, at_least: int | None = None
) -> DecodedImage:
    """Bytes to an upright RGB image, or an ImageRejected that says why not.

    With `at_least`, a JPEG may come at a half, a quarter or an eighth of its size, with no side
    shorter than that: much less work for whoever would shrink it anyway.
    """
    format_ = sniff(data)
    try:
        return _decode(data, format_, max_pixels, at_least)
    except ImageRejected:
        raise
    except Exception as error:  # Pillow raises nearly anything on broken files
        reason = str(error) or type(error).__name__
        raise ImageUndecodable(f"The {format_} data is damaged: {reason[:200]}") from error


def sniff(data: bytes) -> str:
    """The format by its first bytes; names and declared types are not trusted."""
    if not data:
        raise ImageUndecodable("The file is empty.")
    head = data[:_SNIFF_BYTES]
    for magic, format_ in _MAGIC.items():
        if head.startswith(magic):
            return format_
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WEBP"
    if head[4:8] == b"ftyp" and (by_brand := _by_brand(head)):
        return by_brand
    if head.startswith(_FOREIGN) or b"<svg" in head.lower():
        raise UnsupportedFormat(f"Not one of the accepted formats: {', '.join(MEDIA_TYPES)}.")
    if _is_text(head):
        raise ImageUndecodable("The file is text, not an image.")
    raise UnsupportedFormat(f"Unknown format; accepted are {', '.join(MEDIA_TYPES)}.")


def thumbnail(image: Image.Image, size: int) -> bytes:
    """A WebP no larger than `size` on its longer side."""
    small = image.copy()
    small.thumbnail((size, size), Image.Resampling.LANCZOS, reducing_gap=2.0)
    out = io.BytesIO()
    small.save(out, "WEBP", quality=82, method=4)
    return out.getvalue()


def _decode(data: bytes, format_: str, max_pixels: int, at_least: int | None) -> DecodedImage:
    with Image.open(io.BytesIO(data), formats=[format_]) as opened:
        _check_size(opened, max_pixels)
        notes = []
        if getattr(opened, "n_frames", 1) > 1:
            # A HEIF file may hold several pictures; Pillow opens it at the main one.
            is_heif = format_ == "HEIF"
            notes = ["several images: main one used" if is_heif else "animated: first frame used"]
            if not is_heif:
                opened.seek(0)
        if at_least is not None:
            opened.draft("RGB", (at_least, at_least))
        opened.load()
        _check_size(opened, max_pixels)  # a HEIF may turn out larger than its header says
        ImageOps.exif_transpose(opened, in_place=True)
        return DecodedImage(_to_rgb(opened), format_, notes)


def _check_size(image: Image.Image, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise ImageTooLarge(
            f"{width} x {height} pixels; at most {max_pixels / 1e6:g} megapixels are accepted."
        )


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "RGB":
        return image.copy()  # the original's file is closed on return
    if image.mode.startswith(("I", "F")):
        return _scale_deep(image)
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")


def _scale_deep(image: Image.Image) -> Image.Image:
    """Sixteen bits and more to eight by scaling: clipping would turn most scans white."""
    pixels = np.nan_to_num(np.asarray(image, dtype=np.float64))
    low, high = min(pixels.min(), 0.0), pixels.max()
    if not image.mode.startswith("F"):
        high = max(high, 65535.0)
    scaled = (pixels - low) * (255.0 / max(high - low, 1e-12))
    return Image.fromarray(scaled.astype(np.uint8)).convert("RGB")


def _by_brand(head: bytes) -> str | None:
    """The main brand decides; a general one leaves it to those that the file is also good for."""
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
        # the cut at the end may split a character
        return error.start > len(head) - 4 and _is_text(head[: error.start])
