"""Features of a stream of pictures."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from temi.errors import InvalidConfig

_THREADS = 4  # resizing releases the interpreter lock


class Embedder(Protocol):
    """The part of a backbone that embedding needs."""

    def preprocess(self, image: Image.Image) -> Tensor: ...

    def forward(self, batch: Tensor) -> Tensor: ...


def embed_images(
    backbone: Embedder, images: Iterable[Image.Image], *, batch_size: int = 64
) -> Iterator[npt.NDArray[np.float32]]:
    """Features (b, D) in the order of the images; at most two batches are ever in flight."""
    if batch_size < 1:
        raise InvalidConfig("batch_size", "must be at least 1")
    return _embed(backbone, images, batch_size)


def _embed(
    backbone: Embedder, images: Iterable[Image.Image], batch_size: int
) -> Iterator[npt.NDArray[np.float32]]:
    source = iter(images)
    waiting: deque[Future[Tensor]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            while True:
                for image in source:
                    waiting.append(pool.submit(backbone.preprocess, image))
                    if len(waiting) >= 2 * batch_size:
                        break
                if not waiting:
                    return
                size = min(batch_size, len(waiting))
                batch = torch.stack([waiting.popleft().result() for _ in range(size)])
                yield backbone.forward(batch).cpu().numpy()
        finally:
            for future in waiting:
                future.cancel()
