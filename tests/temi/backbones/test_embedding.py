import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from temi.backbones.embedding import Picture, embed_files, embed_images, read_image
from temi.backbones.extractor import Features
from temi.backbones.load import load_backbone
from temi.backbones.preprocessing import Pixels, Preprocessing
from temi.errors import InvalidConfig


def blas_threads() -> int:
    """The cores that a matrix product of numpy uses."""
    return max(int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas")


class FakeBackbone:
    """Maps an image to its mean color, and records the batches."""

    preprocessing = Preprocessing(
        size=4, resize=4, interpolation="bilinear", mean=(0, 0, 0), std=(1, 1, 1)
    )

    def __init__(self, device: str = "cpu") -> None:
        self.device_type = device
        self.batches: list[int] = []
        self.threads: set[tuple[int, int]] = set()  # who computed, with how many cores

    def embed(self, pixels: Pixels) -> Features:
        self.batches.append(len(pixels))
        self.threads.add((threading.get_ident(), blas_threads()))
        return np.asarray(pixels.mean(axis=(1, 2), dtype=np.float32))


def picture(value: int) -> Image.Image:
    return Image.new("RGB", (4, 4), (value % 256, 0, 0))


def pictures(n: int) -> Iterator[Image.Image]:
    return map(picture, range(n))


def reds(parts: Iterator[np.ndarray[tuple[int, int], np.dtype[np.float32]]]) -> list[float]:
    return [value for part in parts for value in part[:, 0].tolist()]


@pytest.mark.parametrize("device", ["cpu", "meta"])  # any other device: one thread computes
@pytest.mark.parametrize(("n", "expected"), [(0, []), (1, [1]), (8, [8]), (19, [8, 8, 3])])
def test_order_and_batches(n: int, expected: list[int], device: str) -> None:
    backbone = FakeBackbone(device)

    parts = list(embed_images(backbone, pictures(n), batch_size=8, threads=3))

    assert [len(part) for part in parts] == expected
    assert sorted(backbone.batches, reverse=True) == expected
    assert reds(iter(parts)) == list(range(n))


def test_slow_images_keep_their_order() -> None:
    def slow(value: int) -> Image.Image:
        time.sleep(0.02 if value % 3 == 0 else 0)
        return picture(value)

    ways = [partial(slow, value) for value in range(12)]

    assert reds(embed_images(FakeBackbone(), ways, batch_size=1, threads=4)) == list(range(12))


def test_a_bounded_number_of_images_is_read_ahead() -> None:
    taken = 0

    def counted() -> Iterator[Image.Image]:
        nonlocal taken
        for image in pictures(200):
            taken += 1
            yield image

    stream = embed_images(FakeBackbone(), counted(), batch_size=5, threads=2)
    assert taken == 0
    for done in range(6):
        next(stream)
        assert taken <= 5 * (done + 4)


def test_a_thread_decodes_one_image_at_a_time() -> None:
    alive, most = 0, 0
    lock = threading.Lock()

    class Counted(Image.Image):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def decode(value: int) -> Image.Image:
        nonlocal alive, most
        image = picture(value)
        image.__class__ = Counted
        with lock:
            alive += 1
            most = max(most, alive)
        return image

    list(embed_images(FakeBackbone(), [partial(decode, i) for i in range(60)], threads=1))

    assert most <= 2  # the next is decoded before the name of the last is bound anew


def test_each_thread_uses_one_core_and_the_setting_is_restored() -> None:
    backbone = FakeBackbone()

    with threadpool_limits(2, "blas"):
        list(embed_images(backbone, pictures(40)))
        assert blas_threads() == 2

    assert {cores for _, cores in backbone.threads} == {1}
    assert threading.get_ident() not in {who for who, _ in backbone.threads}
    assert max(backbone.batches) < 40


def test_the_setting_is_restored_if_the_stream_is_closed_early() -> None:
    with threadpool_limits(2, "blas"):
        stream = embed_images(FakeBackbone(), pictures(100))
        next(stream)
        del stream

        assert blas_threads() == 2


def test_an_error_of_the_source_is_raised() -> None:
    def broken() -> Iterator[Image.Image]:
        yield from pictures(3)
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        list(embed_images(FakeBackbone(), broken(), batch_size=2))


def failing(n: int, bad: set[int]) -> list[Picture]:
    def fail() -> Image.Image:
        raise OSError("no such picture")

    return [fail if i in bad else picture(i) for i in range(n)]


def test_an_error_of_an_image_is_raised_after_the_features_before_it() -> None:
    stream = embed_images(FakeBackbone(), failing(9, {5}), batch_size=2)

    assert next(stream)[:, 0].tolist() == [0, 1]
    assert next(stream)[:, 0].tolist() == [2, 3]
    with pytest.raises(OSError, match="no such picture"):
        next(stream)


@pytest.mark.parametrize("bad", [{0}, {2, 3}, {8}, set(range(9)), {1, 4, 6}])
def test_unreadable_images_can_be_left_out(bad: set[int]) -> None:
    seen: list[int] = []

    def note(position: int, error: Exception) -> None:
        assert isinstance(error, OSError)
        seen.append(position)

    parts = embed_images(FakeBackbone(), failing(9, bad), batch_size=2, threads=2, on_error=note)

    assert reds(parts) == [i for i in range(9) if i not in bad]
    assert seen == sorted(bad)


@pytest.mark.parametrize("setting", ["batch_size", "threads"])
def test_arguments_are_validated_before_images_are_read(setting: str) -> None:
    call: Callable[..., object] = embed_images
    with pytest.raises(InvalidConfig, match=setting):
        call(FakeBackbone(), [], **{setting: 0})


def test_files(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.{kind}" for i, kind in enumerate(("jpg", "png", "gif"))]
    for i, path in enumerate(paths):
        Image.new("RGB", (64, 32), (80 * i, 0, 0)).save(path)

    found = reds(embed_files(FakeBackbone(), paths))

    assert found == pytest.approx([0, 80, 160], abs=2)


def test_large_jpegs_are_scaled_down_and_rotated(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned
    Image.new("RGB", (640, 480)).save(tmp_path / "a.jpg", exif=exif.tobytes())

    assert read_image(tmp_path / "a.jpg", at_least=120).size == (120, 160)
    assert read_image(tmp_path / "a.jpg", at_least=121).size == (240, 320)
    assert read_image(tmp_path / "a.jpg", at_least=900).size == (480, 640)


def test_scaled_down_photos_have_nearly_the_same_features(tmp_path: Path) -> None:
    backbone = load_backbone("efficientnet_lite0", device="cpu")
    # A third of the photos' height, as 160 is of 480: enlarged photos would have no detail to lose.
    backbone.preprocessing = replace(backbone.preprocessing, size=142, resize=142)
    paths = []
    for i, photo in enumerate(load_sample_images().images):  # 640 x 427
        for left in (0, 35, 70):
            paths.append(tmp_path / f"{i}-{left}.jpg")
            Image.fromarray(photo).crop((left, 0, left + 569, 427)).save(paths[-1], quality=85)
    side = backbone.preprocessing.decode_side
    assert {read_image(path, at_least=side).size for path in paths} == {(285, 214)}

    scaled = np.concatenate(list(embed_files(backbone, paths)))
    whole = np.concatenate(list(embed_images(backbone, map(Image.open, paths))))

    lengths = np.linalg.norm(scaled, axis=1) * np.linalg.norm(whole, axis=1)
    cosine = (scaled * whole).sum(1) / lengths
    assert cosine.mean() > 0.99
