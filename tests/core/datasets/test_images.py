"""Images of all formats and modes: decoded, or refused with a reason."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.images import MEDIA_TYPES, decode_image, make_thumbnail, sniff
from app.core.platform.errors import (
    ImageRejected,
    ImageTooLarge,
    ImageUndecodable,
    UnsupportedFormat,
)
from tests.images import image_bytes, jpeg_bytes, png_bytes

# Pillow warns about files that it then reads; outside of tests, warnings are not errors.
pytestmark = pytest.mark.filterwarnings("ignore")


def _saved(image: Image.Image, format_: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


def _color(data: bytes) -> tuple[int, ...]:
    decoded = decode_image(data).image
    assert decoded.mode == "RGB"
    pixel = decoded.getpixel((0, 0))
    assert isinstance(pixel, tuple)
    return pixel


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png_claiming(width: int, height: int) -> bytes:
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n" + header + _chunk(b"IDAT", zlib.compress(b"")) + _chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("format_", MEDIA_TYPES)
def test_accepted_formats(format_: str) -> None:
    decoded = decode_image(image_bytes(format_, (200, 30, 40)))
    assert decoded.format == format_
    assert decoded.image.size == (16, 12)
    assert decoded.notes == []
    found = np.asarray(decoded.image, dtype=int)[0, 0]
    assert np.abs(found - (200, 30, 40)).max() <= 8


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="zero bytes"),
        pytest.param(b"Dear photo service,\nplease find attached", id="text"),
        pytest.param("Grüße, 写真".encode() * 40, id="text cut inside a character"),
        pytest.param(jpeg_bytes(size=(64, 64))[:-200], id="truncated JPEG"),
        pytest.param(jpeg_bytes()[:3], id="three bytes of a JPEG"),
        pytest.param(png_bytes(size=(64, 64))[:-30], id="truncated PNG"),
        pytest.param(image_bytes("GIF")[:20], id="truncated GIF"),
        pytest.param(image_bytes("WEBP")[:-20], id="truncated WebP"),
        pytest.param(image_bytes("BMP")[:-20], id="truncated BMP"),
        pytest.param(image_bytes("TIFF")[:-60], id="truncated TIFF"),
        pytest.param(b"RIFF\x00\x00\x00\x00WEBPnothing", id="only a WebP header"),
        pytest.param(image_bytes("HEIF")[:-20], id="truncated HEIF"),
        pytest.param(image_bytes("AVIF")[:-20], id="truncated AVIF"),
        pytest.param(image_bytes("HEIF")[:40], id="only a HEIF header"),
        pytest.param(image_bytes("AVIF")[:40], id="only an AVIF header"),
    ],
)
def test_damaged_files_are_undecodable(data: bytes) -> None:
    with pytest.raises(ImageUndecodable) as caught:
        decode_image(data)
    assert caught.value.code == "image_undecodable"
    assert caught.value.detail


def test_a_png_with_a_bad_checksum_is_undecodable() -> None:
    data = bytearray(png_bytes(size=(64, 64)))
    data[data.index(b"IDAT") + 8] ^= 0xFF
    with pytest.raises(ImageUndecodable):
        decode_image(bytes(data))


def test_a_small_file_that_claims_to_be_huge() -> None:
    data = _png_claiming(60_000, 60_000)
    assert len(data) < 80
    with pytest.raises(ImageTooLarge, match="60000 x 60000"):
        decode_image(data)


def test_the_limit_of_pixels() -> None:
    data = png_bytes(size=(10, 10))
    assert decode_image(data, limits=DecodeLimits(pixels=100)).image.size == (10, 10)
    with pytest.raises(ImageTooLarge):
        decode_image(data, limits=DecodeLimits(pixels=99))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'<svg xmlns="http://www.w3.org/2000/svg"/>', id="SVG"),
        pytest.param(b'<?xml version="1.0"?>\n<!-- x -->\n<SVG></SVG>', id="SVG in XML"),
        pytest.param(b"%!PS-Adobe-3.0 EPSF-3.0\n", id="EPS"),
        pytest.param(b"\xc5\xd0\xd3\xc6" + bytes(40), id="EPS with a preview"),
        pytest.param(b"%PDF-1.7\n", id="PDF"),
        pytest.param(b"8BPS\x00\x01" + bytes(40), id="PSD"),
        pytest.param(image_bytes("ICO", size=(16, 16)), id="ICO"),
        pytest.param(image_bytes("PPM")[:2] + b"\x00\xff" * 20, id="unknown"),
        pytest.param(b"PK\x03\x04" + bytes(40), id="zip"),
        pytest.param(b"\x00\x01\x02\x03" * 10, id="binary"),
        pytest.param(b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", id="film"),
    ],
)
def test_other_formats_are_named_as_such(data: bytes) -> None:
    with pytest.raises(UnsupportedFormat) as caught:
        decode_image(data)
    assert caught.value.code == "unsupported_format"
    assert "JPEG" in caught.value.detail


def test_cmyk_is_converted() -> None:
    red, green, blue = _color(_saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"))
    assert red > 200
    assert max(green, blue) < 60


def test_a_palette_is_looked_up() -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 0, 10, 200, 30])
    assert _color(_saved(image, "PNG")) == (10, 200, 30)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_transparent_pixels_become_white(mode: str) -> None:
    image = Image.new("RGBA", (8, 8), (0, 0, 0, 0)).convert(mode)
    assert _color(_saved(image, "TIFF" if mode == "PA" else "PNG")) == (255, 255, 255)


def test_half_transparent_black_is_gray() -> None:
    red, green, blue = _color(_saved(Image.new("RGBA", (8, 8), (0, 0, 0, 128)), "PNG"))
    assert red == green == blue
    assert 120 <= red <= 135


def test_a_transparent_palette_entry_is_white() -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 0, 10, 200, 30])
    assert _color(_saved(image, "PNG", transparency=1)) == (255, 255, 255)


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (1, 255)])
def test_one_bit(value: int, expected: int) -> None:
    assert _color(_saved(Image.new("1", (8, 8), value), "PNG")) == (expected,) * 3


@pytest.mark.parametrize("format_", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped(format_: str) -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    decoded = decode_image(_saved(Image.fromarray(ramp), format_)).image
    gray = np.asarray(decoded, dtype=int)[..., 0].ravel()
    assert np.abs(gray - np.arange(256)).max() <= 1
    assert (gray == 255).sum() <= 2


def test_a_dark_sixteen_bit_image_stays_dark() -> None:
    dark = np.full((8, 8), 1000, dtype=np.uint16)
    assert _color(_saved(Image.fromarray(dark), "PNG"))[0] < 10


def test_floats_are_scaled_to_their_range() -> None:
    pixels = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    pixels[0, 1] = np.nan
    decoded = np.asarray(decode_image(_saved(Image.fromarray(pixels), "TIFF")).image)
    assert decoded[-1, -1, 0] == 255
    assert decoded[0, 0, 0] == 0


def test_a_flat_float_image_does_not_divide_by_zero() -> None:
    pixels = np.zeros((8, 8), dtype=np.float32)
    assert _color(_saved(Image.fromarray(pixels), "TIFF")) == (0, 0, 0)


@pytest.mark.parametrize(("orientation", "turned"), [(1, False), (3, False), (6, True), (8, True)])
def test_exif_turns_the_image_upright(orientation: int, turned: bool) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    decoded = decode_image(_saved(Image.new("RGB", (32, 16)), "JPEG", exif=exif.tobytes()))
    assert decoded.image.size == ((16, 32) if turned else (32, 16))


@pytest.mark.parametrize(
    ("at_least", "expected"), [(None, (640, 480)), (240, (320, 240)), (241, (640, 480))]
)
def test_a_jpeg_is_decoded_no_smaller_than_requested(
    at_least: int | None, expected: tuple[int, int]
) -> None:
    assert decode_image(jpeg_bytes(size=(640, 480)), at_least=at_least).image.size == expected


@pytest.mark.parametrize("format_", sorted(set(MEDIA_TYPES) - {"JPEG"}))
def test_other_formats_are_decoded_at_full_size(format_: str) -> None:
    data = image_bytes(format_, size=(640, 480))
    assert decode_image(data, at_least=40).image.size == (640, 480)


def test_a_jpeg_at_a_fraction_is_upright_and_looks_the_same() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.linear_gradient("L").resize((800, 400)).convert("RGB")
    data = _saved(image, "JPEG", exif=exif.tobytes())

    small, whole = decode_image(data, at_least=100).image, decode_image(data).image

    assert small.size == (100, 200)
    assert whole.size == (400, 800)
    difference = np.asarray(small, dtype=int) - np.asarray(whole.resize(small.size), dtype=int)
    assert np.abs(difference).max() <= 3


def test_reduced_decoding_refuses_the_same_images() -> None:
    data = jpeg_bytes(size=(640, 480))
    with pytest.raises(ImageUndecodable):
        decode_image(data[:-200], at_least=40)
    with pytest.raises(ImageTooLarge):
        decode_image(data, limits=DecodeLimits(pixels=640 * 480 - 1), at_least=40)
    gray = decode_image(_saved(Image.new("L", (640, 480), 90), "JPEG"), at_least=40).image
    assert gray.getpixel((0, 0)) == (90, 90, 90)


@pytest.mark.parametrize("format_", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_frame_of_an_animation_is_used_and_noted(format_: str) -> None:
    frames = [Image.new("RGB", (8, 8), color) for color in ("blue", "red", "green")]
    data = _saved(frames[0], format_, save_all=True, append_images=frames[1:])
    decoded = decode_image(data)
    assert decoded.notes == ["animated: first frame used"]
    red, _, blue = _color(data)
    assert blue > 200 > red


def test_only_the_bytes_decide_the_format() -> None:
    assert sniff(png_bytes()) == "PNG"
    with pytest.raises(ImageRejected):
        sniff(b"GIF8")


def test_a_thumbnail_is_webp_and_small() -> None:
    small = decode_image(make_thumbnail(png_bytes(size=(400, 100)), 64))
    assert small.format == "WEBP"
    assert small.image.size == (64, 16)


def test_a_small_image_is_not_enlarged() -> None:
    assert decode_image(make_thumbnail(png_bytes(size=(8, 8)), 64)).image.size == (8, 8)
