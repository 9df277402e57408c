"""Embeds a stream of images with bounded memory; does not load torch."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.backbones.extractor import Features
from temi.backbones.preprocessing import Pixels, Preprocessing, Square
from temi.cores import core_count
from temi.errors import InvalidConfig

Picture = Image.Image | Callable[[], Image.Image | Square]
"""An image, or a function that returns it or its central square; called in a thread before use."""

OnError = Callable[[int, Exception], None]
"""Called with the index of an image that could not be read and the error; may raise to stop."""

_CPU_BATCH = 4  # images per task of a thread, which computes them one by one
_GPU_BATCH = 64

_Group = list[tuple[int, Picture]]
_Failures = list[tuple[int, Exception]]


class Embedder(Protocol):
    """The part of a backbone that embedding needs."""

    @property
    def preprocessing(self) -> Preprocessing: ...

    @property
    def device_type(self) -> str: ...

    def embed(self, pixels: Pixels) -> Features: ...


def embed_images(
    backbone: Embedder,
    images: Iterable[Picture],
    *,
    batch_size: int | None = None,
    threads: int | None = None,
    on_error: OnError | None = None,
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield the features (b, D) of each batch, in the order of the images.

    At most two batches per thread are in flight. An image that cannot be read raises its error;
    with ``on_error`` it is left out instead.
    """
    if batch_size is not None and batch_size < 1:
        raise InvalidConfig("batch_size", f"must be at least 1, not {batch_size}")
    if threads is not None and threads < 1:
        raise InvalidConfig("threads", f"must be at least 1, not {threads}")
    return _embed(backbone, images, batch_size, threads or core_count(), on_error)


def default_batch(device_type: str) -> int:
    return _CPU_BATCH if device_type == "cpu" else _GPU_BATCH


def embed_files(
    backbone: Embedder,
    paths: Iterable[str | os.PathLike[str]],
    *,
    batch_size: int | None = None,
    threads: int | None = None,
    on_error: OnError | None = None,
) -> Iterator[npt.NDArray[np.float32]]:
    """Like ``embed_images``, for files that Pillow can open."""
    side = backbone.preprocessing.decode_side
    images = (partial(read_image, path, at_least=side) for path in paths)
    return embed_images(backbone, images, batch_size=batch_size, threads=threads, on_error=on_error)


def read_image(path: str | os.PathLike[str] | IO[bytes], *, at_least: int) -> Image.Image:
    """Read an image, rotated by its EXIF tag; a JPEG may be scaled down to ``at_least`` pixels."""
    with Image.open(path) as image:
        image.draft("RGB", (at_least, at_least))
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
        return image


def _embed(
    backbone: Embedder,
    images: Iterable[Picture],
    batch_size: int | None,
    threads: int,
    on_error: OnError | None,
) -> Iterator[npt.NDArray[np.float32]]:
    """Each thread reads a batch and, on a CPU, also computes its features on one core.

    Threads that share a layer would wait for each other, and for decoding threads, after each one.
    """
    on_cpu = backbone.device_type == "cpu"
    work = partial(_read_and_embed, backbone) if on_cpu else partial(_read, backbone.preprocessing)
    source = enumerate(images)
    size = batch_size or default_batch(backbone.device_type)
    waiting: deque[Future[tuple[npt.NDArray[Any], _Failures]]] = deque()
    # Several images are resized at once, each on one core; some libraries limit each thread.
    one_core = partial(threadpool_limits, 1, "blas")
    with one_core(), ThreadPoolExecutor(threads, "embed", initializer=one_core) as pool:
        try:
            while True:
                while len(waiting) < 2 * threads and (group := list(islice(source, size))):
                    waiting.append(pool.submit(work, group))
                if not waiting:
                    return
                result, failures = waiting.popleft().result()
                _report(failures, on_error)
                if len(result):
                    yield result if on_cpu else backbone.embed(result)
        finally:
            for future in waiting:
                future.cancel()


def _read_and_embed(backbone: Embedder, group: _Group) -> tuple[Features, _Failures]:
    pixels, failures = _read(backbone.preprocessing, group)
    return backbone.embed(pixels) if len(pixels) else np.empty((0, 0), np.float32), failures


def _read(preprocessing: Preprocessing, group: _Group) -> tuple[Pixels, _Failures]:
    """Return the pixels (b, S, S, 3) of the readable images; decodes one image at a time."""
    pixels = preprocessing.new_batch(len(group))
    failures: _Failures = []
    done = 0
    for position, picture in group:
        try:
            image = picture if isinstance(picture, Image.Image) else picture()
            preprocessing.fill(pixels[done], image)
        except Exception as error:  # noqa: BLE001 - passed to the caller
            failures.append((position, error))
        else:
            done += 1
    return pixels[:done], failures


def _report(failures: _Failures, on_error: OnError | None) -> None:
    for position, error in failures:
        if on_error is None:
            raise error
        on_error(position, error)
