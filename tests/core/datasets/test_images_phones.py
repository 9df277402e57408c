"""HEIF and AVIF images of phones."""

import io
import struct

import pytest
from PIL import Image

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.images import decode_image, sniff
from app.core.platform.errors import ImageTooLarge
from tests.images import image_bytes

# Pillow warns about files that it then reads; outside of tests, warnings are not errors.
pytestmark = pytest.mark.filterwarnings("ignore")


def _saved(image: Image.Image, format_: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("main", "others", "expected"),
    [
        (b"heic", [b"mif1"], "HEIF"),
        (b"mif1", [b"heic"], "HEIF"),
        (b"mif1", [b"miaf", b"avif"], "AVIF"),
        (b"avis", [b"msf1"], "AVIF"),
        (b"heic", [b"avif"], "HEIF"),
    ],
)
def test_brands_tell_heif_from_avif(main: bytes, others: list[bytes], expected: str) -> None:
    brands = b"".join(others)
    head = struct.pack(">I", 16 + len(brands)) + b"ftyp" + main + bytes(4) + brands
    assert sniff(head + b"\x00\x00\x00\x08meta") == expected


@pytest.mark.parametrize("format_", ["HEIF", "AVIF"])
def test_the_limit_of_pixels_holds_before_newer_formats_are_decoded(
    format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = image_bytes(format_, size=(64, 64))

    def decoded(*_: object) -> None:
        raise AssertionError("must not be decoded")

    with Image.open(io.BytesIO(data)) as opened:
        monkeypatch.setattr(type(opened), "load", decoded)
    with pytest.raises(ImageTooLarge):
        decode_image(data, limits=DecodeLimits(pixels=64 * 64 - 1))


def _striped(size: tuple[int, int] = (64, 32)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    image.paste("red", (0, 0, 16, size[1]))  # its left side
    return image


@pytest.mark.parametrize("format_", ["HEIF", "AVIF"])
def test_a_turned_photo_of_a_phone_is_upright(format_: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees: the left side is on top
    decoded = decode_image(_saved(_striped(), format_, exif=exif.tobytes())).image
    assert decoded.size == (32, 64)
    top, bottom = decoded.getpixel((16, 2)), decoded.getpixel((16, 60))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[1] < 60 < 200 < bottom[1]


def test_the_main_one_of_several_pictures_in_a_heif() -> None:
    others = [Image.new("RGB", (16, 12), color) for color in ("lime", "blue")]
    data = _saved(
        Image.new("RGB", (16, 12), "red"),
        "HEIF",
        save_all=True,
        append_images=others,
        primary_index=2,
    )
    decoded = decode_image(data)
    assert decoded.notes == ["several images: main one used"]
    pixel = decoded.image.getpixel((5, 5))
    assert isinstance(pixel, tuple)
    assert pixel[2] > 200 > 60 > pixel[0]


def test_the_first_frame_of_an_animated_avif() -> None:
    frames = [Image.new("RGB", (16, 12), color) for color in ("lime", "blue")]
    data = _saved(Image.new("RGB", (16, 12), "red"), "AVIF", save_all=True, append_images=frames)
    decoded = decode_image(data)
    assert decoded.notes == ["animated: first frame used"]
    pixel = decoded.image.getpixel((5, 5))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 200


@pytest.mark.parametrize("format_", ["HEIF", "AVIF"])
def test_transparent_parts_of_newer_formats_become_white(format_: str) -> None:
    data = _saved(Image.new("RGBA", (16, 12), (255, 0, 0, 0)), format_)
    pixel = decode_image(data).image.getpixel((0, 0))
    assert isinstance(pixel, tuple)
    assert min(pixel) > 240
