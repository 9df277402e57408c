"""Images that are refused by their headers, before any pixel is decoded."""

import io

import pytest
from PIL import Image

from app.core.datasets.decoding.headers import (
    MAX_JPEG_SCANS,
    DecodeLimits,
    check_memory,
    check_opened,
    count_scans,
    is_cheap_jpeg,
)
from app.core.datasets.images import decode_image, inspect_image
from app.core.platform.errors import ImageTooLarge, ImageUndecodable
from tests.hostile_images import jpeg_of_scans, tiff_of_pages, webp_claiming
from tests.images import jpeg_bytes, png_bytes

LIMITS = DecodeLimits()


def _progressive(side: int, subsampling: int = 0) -> bytes:
    out = io.BytesIO()
    image = Image.linear_gradient("L").resize((side, side)).convert("RGB")
    image.save(out, "JPEG", progressive=True, subsampling=subsampling)
    return out.getvalue()


def test_scans_are_counted() -> None:
    assert count_scans(jpeg_bytes()) == 1
    data = _progressive(64)
    assert count_scans(data) == data.count(b"\xff\xda") > 1
    assert count_scans(jpeg_of_scans(50)) == 50
    assert count_scans(jpeg_of_scans(6_000)) == MAX_JPEG_SCANS + 1  # no further


def test_scans_of_a_preview_do_not_count() -> None:
    preview = _progressive(64)
    exif = b"\xff\xe1" + (len(preview) + 2).to_bytes(2) + preview
    data = jpeg_bytes()
    assert count_scans(data[:2] + exif + data[2:]) == 1


def test_a_marker_without_a_length_hides_no_scans() -> None:
    data = jpeg_of_scans(200)
    first = data.index(b"\xff\xda")
    assert count_scans(data[:first] + b"\xff\x01\xff\xff" + data[first:]) > MAX_JPEG_SCANS


def test_only_a_jpeg_of_very_many_scans_is_refused() -> None:
    with pytest.raises(ImageUndecodable, match="scans"):
        decode_image(jpeg_of_scans(MAX_JPEG_SCANS + 1))
    assert inspect_image(jpeg_of_scans(MAX_JPEG_SCANS)).width == 64


def test_coefficients_of_all_scans_need_memory() -> None:
    data = _progressive(1_000)  # three components of a million, two bytes each
    with Image.open(io.BytesIO(data)) as opened:
        check_opened(opened, data, "JPEG", DecodeLimits(bytes=6_000_000))
        with pytest.raises(ImageTooLarge, match="several scans"):
            check_opened(opened, data, "JPEG", DecodeLimits(bytes=5_999_999))
    one = jpeg_bytes(size=(1_000, 1_000))
    with Image.open(io.BytesIO(one)) as opened:
        check_opened(opened, one, "JPEG", DecodeLimits(bytes=1_000))


def _with_metadata(data: bytes, size: int) -> bytes:
    return data[:2] + b"\xff\xe1" + (size + 2).to_bytes(2) + bytes(size) + data[2:]


def test_small_jpegs_are_cheap() -> None:
    assert is_cheap_jpeg(jpeg_bytes(size=(640, 480)))
    assert is_cheap_jpeg(jpeg_bytes(size=(2_000, 2_000)))
    assert is_cheap_jpeg(_progressive(500))
    assert is_cheap_jpeg(_with_metadata(jpeg_bytes(), 8_000))


@pytest.mark.parametrize(
    "data",
    [
        jpeg_bytes(size=(2_001, 2_000)),
        _progressive(1_000),
        jpeg_of_scans(6_000),
        _with_metadata(jpeg_bytes(), 20_000),
        jpeg_bytes()[:2] + b"\xff\xe0\x00\x02" * 100_000 + jpeg_bytes()[2:],
        jpeg_bytes() + bytes(256 * 1024),
        jpeg_bytes()[:20],
        jpeg_bytes()[:2] + b"\xff\x01" + jpeg_bytes()[2:],
        png_bytes(),
        b"",
    ],
    ids=[
        "pixels",
        "progressive",
        "scans",
        "metadata",
        "segments",
        "bytes",
        "cut",
        "marker",
        "png",
        "empty",
    ],
)
def test_expensive_jpegs_are_not_cheap(data: bytes) -> None:
    assert not is_cheap_jpeg(data)


def test_a_second_size_is_not_cheap() -> None:
    """Decoders differ in which one they use."""
    data = jpeg_bytes(size=(640, 480))
    frame = data.index(b"\xff\xc0")
    assert not is_cheap_jpeg(data[:frame] + data[frame : frame + 19] + data[frame:])


def test_the_pages_of_a_tiff_are_not_counted() -> None:
    data = tiff_of_pages(20_000)
    assert inspect_image(data).notes == ["animated: first frame used"]
    assert inspect_image(tiff_of_pages(1)).notes == []


def test_a_webp_is_refused_before_its_canvas_is_allocated() -> None:
    for size in ((16_000, 16_000), (7_000, 7_000)):
        with pytest.raises(ImageTooLarge):
            decode_image(webp_claiming(*size))


@pytest.mark.parametrize(
    ("format_", "mode"),
    [("PNG", "RGB"), ("PNG", "RGBA"), ("PNG", "I;16"), ("TIFF", "CMYK"), ("HEIF", "RGB")],
)
def test_fifty_megapixels_are_accepted(format_: str, mode: str) -> None:
    check_memory(format_, mode, 10_000, 5_000, LIMITS)


@pytest.mark.parametrize(("format_", "megapixels"), [("WEBP", 20), ("AVIF", 36)])
def test_formats_with_expensive_decoders_have_a_lower_limit(format_: str, megapixels: int) -> None:
    check_memory(format_, "RGB", 1_000 * (megapixels - 2), 1_000, LIMITS)
    with pytest.raises(ImageTooLarge, match="MiB"):
        check_memory(format_, "RGB", 1_000 * megapixels, 1_000, LIMITS)
