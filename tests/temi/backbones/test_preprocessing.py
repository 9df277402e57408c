import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from temi.backbones.base import normalize
from temi.backbones.preprocessing import INTERPOLATIONS, Pixels, Preprocessing


def make(size: int = 8, resize: int = 8) -> Preprocessing:
    return Preprocessing(
        size=size,
        resize=resize,
        interpolation="bicubic",
        mean=(127.0, 127.0, 127.0),
        std=(128.0, 128.0, 128.0),
    )


def fill(preprocessing: Preprocessing, image: Image.Image) -> Pixels:
    pixels: Pixels = preprocessing.new_batch(1)[0]
    preprocessing.fill(pixels, image)
    return pixels


def test_the_center_of_a_wide_image_is_kept() -> None:
    wide = Image.new("RGB", (300, 100), (255, 0, 0))
    wide.paste((127, 127, 127), (80, 0, 220, 100))

    assert (fill(make(), wide) == 127).all()


def test_the_crop_margin_is_removed() -> None:
    framed = Image.new("RGB", (100, 100), (255, 0, 0))
    framed.paste((127, 127, 127), (5, 5, 95, 95))

    assert (fill(make(size=8, resize=16), framed) == 127).all()


def test_reducing_large_photos_first_changes_little() -> None:
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8))
    large = small.resize((1600, 1600), Image.Resampling.BICUBIC)

    exact = np.asarray(large.resize((8, 8), Image.Resampling.BICUBIC), dtype=np.float32)

    assert np.abs(fill(make(), large) - exact).max() < 6


def test_unusual_modes_and_tiny_images() -> None:
    assert fill(make(), Image.new("L", (1, 3))).shape == (8, 8, 3)
    assert fill(make(), Image.new("RGBA", (5, 1))).shape == (8, 8, 3)


def test_as_dict_can_be_stored_as_json() -> None:
    values = make().as_dict()

    assert json.loads(json.dumps(values)) == values


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("size", [(8, 8), (21, 13), (9, 40), (5, 5), (200, 101)])
def test_the_square_equals_that_of_pillow(size: tuple[int, int], interpolation: str) -> None:
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(90, 160, (*size[::-1], 3), dtype=np.uint8))
    side = min(size)
    left, top = (size[0] - side) // 2, (size[1] - side) // 2
    square = image.crop((left, top, left + side, top + side))
    if side >= 32:
        square = square.reduce(side // 16)
    expected = square.resize((8, 8), Image.Resampling[interpolation.upper()])

    pixels = fill(replace(make(), interpolation=interpolation), image)

    assert np.abs(pixels.astype(int) - np.asarray(expected, dtype=int)).max() <= 2


def test_a_batch_is_normalized_without_a_copy_of_its_layout() -> None:
    preprocessing = replace(make(), mean=(1.0, 2.0, 3.0), std=(4.0, 5.0, 6.0))
    rng = np.random.default_rng(0)
    pixels = torch.from_numpy(rng.integers(0, 256, (2, 8, 8, 3), dtype=np.uint8))

    batch = normalize(pixels, preprocessing)

    expected = (pixels.float() - torch.tensor([1.0, 2, 3])) / torch.tensor([4.0, 5, 6])
    assert torch.equal(batch, expected.permute(0, 3, 1, 2))
    assert batch.is_contiguous(memory_format=torch.channels_last)


def test_jpegs_are_decoded_somewhat_larger_than_needed() -> None:
    assert make(size=8, resize=9).decode_side == 14
