"""Upright RGB in parts equals Pillow's conversion of the whole image."""

import numpy as np
import pytest
from PIL import Image, ImageOps

from app.core.datasets.decoding import pixels
from app.core.datasets.decoding.pixels import UprightPixels
from temi.backbones.cropping import CentralSquare


@pytest.fixture(autouse=True)
def small_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "_STRIP_PIXELS", 200)


def _noise(mode: str = "RGB", size: tuple[int, int] = (53, 41)) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 255, (*size[::-1], 4), dtype=np.uint8)
    return Image.fromarray(values).convert(mode)


@pytest.mark.parametrize("orientation", range(10))
def test_every_orientation(orientation: int) -> None:
    image = _noise()
    image.getexif()[0x0112] = orientation
    expected = ImageOps.exif_transpose(image)
    upright = UprightPixels.of_image(image)
    assert upright.size == expected.size
    assert upright.whole().tobytes() == expected.tobytes()
    box = (3, 5, 20, 31)
    assert upright.part(box).tobytes() == expected.crop(box).tobytes()


@pytest.mark.parametrize("factor", [1, 2, 3, 7])
def test_strips_are_reduced_as_the_whole(factor: int) -> None:
    image, box = _noise(), (2, 3, 49, 40)
    found = UprightPixels.of_image(image).reduced(box, factor)
    expected = image.reduce(factor, box=box) if factor > 1 else image.crop(box)
    assert found.size == expected.size
    assert found.tobytes() == expected.tobytes()


def test_the_square_of_a_large_picture() -> None:
    image, square = _noise(size=(90, 70)), CentralSquare(size=8, resize=9)
    box = square.box(*image.size)
    assert square.factor(box[2] - box[0]) > 1
    expected = image.reduce(square.factor(box[2] - box[0]), box=box)
    assert UprightPixels.of_image(image).square(square).tobytes() == expected.tobytes()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr"])
def test_every_mode(mode: str) -> None:
    image = _noise(mode)
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        expected = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    else:
        expected = image.convert("RGB")
    assert UprightPixels.of_image(image).whole().tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.float32])
def test_deep_images_are_scaled_by_the_range_of_all_pixels(kind: type[np.generic]) -> None:
    values = np.random.default_rng(0).normal(20_000, 5_000, (41, 53)).astype(kind)
    low, high = min(values.min(), 0), values.max()
    if kind is not np.float32:
        high = max(high, 65_535)
    scaled = (values.astype(np.float64) - low) * (255.0 / (high - low))
    found = UprightPixels.of_image(Image.fromarray(values)).whole()
    np.testing.assert_array_equal(np.asarray(found)[..., 0], scaled.astype(np.uint8))
