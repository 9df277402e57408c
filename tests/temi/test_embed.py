from collections.abc import Iterator

import numpy as np
import pytest
import torch
from PIL import Image

from temi.embed import embed_images
from temi.errors import InvalidConfig


class FakeBackbone:
    """Maps a picture to its mean color, and remembers the batches it saw."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def preprocess(self, image: Image.Image) -> torch.Tensor:
        return torch.from_numpy(np.array(image, dtype=np.float32)).permute(2, 0, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.batches.append(len(batch))
        return batch.mean(dim=(2, 3))


def pictures(n: int) -> Iterator[Image.Image]:
    return (Image.new("RGB", (4, 4), (i % 256, 0, 0)) for i in range(n))


@pytest.mark.parametrize(("n", "expected"), [(0, []), (1, [1]), (8, [8]), (19, [8, 8, 3])])
def test_order_and_batches(n: int, expected: list[int]) -> None:
    backbone = FakeBackbone()

    parts = list(embed_images(backbone, pictures(n), batch_size=8))

    assert backbone.batches == expected
    assert [value for part in parts for value in part[:, 0]] == list(range(n))


def test_only_a_bounded_number_of_pictures_is_read_ahead() -> None:
    taken = 0

    def counted() -> Iterator[Image.Image]:
        nonlocal taken
        for picture in pictures(200):
            taken += 1
            yield picture

    stream = embed_images(FakeBackbone(), counted(), batch_size=5)
    assert taken == 0
    for done in range(1, 6):
        next(stream)
        assert taken <= 5 * done + 10


def test_an_error_in_the_source_reaches_the_caller() -> None:
    def broken() -> Iterator[Image.Image]:
        yield from pictures(3)
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        list(embed_images(FakeBackbone(), broken(), batch_size=2))


def test_an_error_in_preprocessing_reaches_the_caller() -> None:
    with pytest.raises((RuntimeError, ValueError)):
        list(embed_images(FakeBackbone(), [Image.new("L", (4, 4))]))


def test_a_batch_needs_a_picture() -> None:
    with pytest.raises(InvalidConfig):
        embed_images(FakeBackbone(), [], batch_size=0)
