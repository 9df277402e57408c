import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import interpolate

from temi.backbones import resizing
from temi.backbones.preprocessing import Pixels
from temi.backbones.resizing import resize


def by_torch(square: Pixels, size: int, interpolation: str) -> Pixels:
    batch = torch.from_numpy(square).permute(2, 0, 1)[None]
    found = interpolate(batch, size=(size, size), mode=interpolation, antialias=True)
    return found[0].permute(1, 2, 0).numpy()


def noise(side: int) -> Pixels:
    return np.random.default_rng(side).integers(0, 256, (side, side, 3), dtype=np.uint8)


def stripes(side: int) -> Pixels:
    """The hardest for sums: only the two extreme values."""
    return np.where(noise(side) > 127, 255, 0).astype(np.uint8)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [8, 31, 224, 260])
def test_the_pixels_are_those_of_torch(size: int, interpolation: str) -> None:
    sides = {1, 2, 3, size // 2, size - 1, size + 1, 2 * size, 2 * size + 1, 3 * size + 7, 4 * size}
    for side in sorted(sides):
        for square in (noise(side), stripes(side)):
            found = resize(square, size, interpolation)
            np.testing.assert_array_equal(found, by_torch(square, size, interpolation), str(side))


def test_sums_that_float32_cannot_hold_are_exact_too() -> None:
    side = 97 * 8

    assert resizing._resized_axis(side, 8, "bicubic").dtype is np.float64
    found = resize(stripes(side), 8, "bicubic")
    np.testing.assert_array_equal(found, by_torch(stripes(side), 8, "bicubic"))


def test_the_same_size_changes_nothing() -> None:
    np.testing.assert_array_equal(resize(noise(9), 9, "bicubic"), noise(9))


def test_other_kinds_of_images_are_close_to_pillow() -> None:
    square = np.asarray(Image.linear_gradient("L").convert("RGB"))
    expected = Image.fromarray(square).resize((50, 50), Image.Resampling.BICUBIC)

    found = resize(square, 50, "bicubic")

    assert np.abs(found.astype(int) - np.asarray(expected, dtype=int)).max() <= 1
