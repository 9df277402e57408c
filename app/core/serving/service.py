"""Labels for new images, computed in a process of its own.

Torch brings about a gigabyte and holds the interpreter for long stretches: the API stays small
and quick without it. A process that dies on a bad file takes no request down but its own.
"""

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.core.errors import (
    ImageRejected,
    ImageTooLarge,
    PredictorUnavailable,
    QueueFull,
)
from app.core.images import decode_image
from app.core.processes import die_with_parent
from app.core.serving.files import ModelFiles, load_model, verify_files
from app.core.settings import Settings
from app.core.storage import LocalStorage

if TYPE_CHECKING:
    from PIL.Image import Image

    from temi.backbones import Backbone
    from temi.model import ClusterModel

_TIMEOUT = 300.0
_MODELS_KEPT = 4


Outcome = npt.NDArray[np.float32] | ImageRejected
"""Probabilities of the clusters (C,), or why this image has none."""


class Serving:
    """The API's side: a bounded queue before one child process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting = threading.BoundedSemaphore(settings.predict_queue)
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def predict(self, model: ModelFiles, images: Sequence[bytes]) -> list[Outcome]:
        if not self._waiting.acquire(blocking=False):
            raise QueueFull("Too many predictions are waiting; try again in a moment.")
        try:
            return self._get_pool().submit(_predict, model, images).result(_TIMEOUT)
        except BrokenExecutor as error:
            self.close()
            raise PredictorUnavailable(
                "The prediction process died; a new one starts with the next request."
            ) from error
        except TimeoutError as error:
            self.close()
            raise PredictorUnavailable("The prediction took too long.") from error
        finally:
            self._waiting.release()

    def prepare(self, model: ModelFiles) -> None:
        """Before an alias moves to it: refuses a version whose files are not what they were."""
        verify_files(LocalStorage(self._settings.blob_dir), model)

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _get_pool(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    max_workers=1,
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_start_child,
                    initargs=(self._settings, os.getpid()),
                )
            return self._pool


_settings: Settings  # of the child process


def _start_child(settings: Settings, parent_pid: int) -> None:
    global _settings
    die_with_parent(parent_pid)
    _settings = settings
    import torch

    torch.set_num_threads(settings.threads)


def _predict(files: ModelFiles, images: Sequence[bytes]) -> list[Outcome]:
    backbone, model = _load_model(files)
    from temi.embed import embed_images

    refused: dict[int, ImageRejected] = {}

    def refuse(position: int, error: Exception) -> None:
        if not isinstance(error, ImageRejected):
            raise error
        refused[position] = error

    pictures = [partial(_decode, data, backbone.preprocessing.decode_side) for data in images]
    features = list(embed_images(backbone, pictures, on_error=refuse))
    rows: Iterator[npt.NDArray[np.float32]]
    rows = iter(model.predict_proba(np.concatenate(features)) if features else ())
    return [refused[i] if i in refused else next(rows) for i in range(len(images))]


def _decode(data: bytes, at_least: int) -> "Image":
    if len(data) > _settings.max_image_bytes:
        raise ImageTooLarge(f"Larger than {_settings.max_image_bytes:,} bytes.")
    return decode_image(data, max_pixels=_settings.max_image_pixels, at_least=at_least).image


@lru_cache(maxsize=_MODELS_KEPT)
def _load_model(files: ModelFiles) -> "tuple[Backbone, ClusterModel]":
    return load_model(files, _settings)
