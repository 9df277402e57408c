"""The side that computes: takes asks and loads models."""

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import structlog

from app.core.datasets.decoding.pool import decoder_pool
from app.core.models.files import ModelFiles, load_model
from app.core.platform.errors import ImageTooLarge, PredictorUnavailable, ServiceError
from app.core.platform.settings import Settings
from app.core.serving.batching import BatchScheduler, Request
from app.core.serving.messages import (
    Loaded,
    LoadFailed,
    PredictFailure,
    PredictRequest,
    ToProcess,
    Unloaded,
)
from app.core.serving.models import LoadedModels, ServedModel

if TYPE_CHECKING:
    from torch import Tensor

    from temi.backbones.preprocessing import Preprocessing

_LOOK_SECONDS = 1.0  # between looks for models that nobody uses
log = structlog.get_logger()


class Predictor:
    """Answers go to `send`, some of them together, from any thread."""

    def __init__(self, settings: Settings, send: Callable[..., None]) -> None:
        self._settings = settings
        self._send = send
        self._decoders = decoder_pool(settings, settings.predict_threads)
        self._decoders.prepare()
        self._lock = threading.Lock()  # of the two below
        self._models = LoadedModels(
            partial(load_model, settings=settings),
            max_bytes=settings.predict_cache_bytes,
            idle_seconds=settings.predict_idle_seconds,
        )
        self._asked: dict[ModelFiles, list[PredictRequest]] = {}  # of models that are being loaded
        self._to_load: queue.SimpleQueue[ModelFiles | None] = queue.SimpleQueue()
        self._used_at = time.monotonic()
        self._batches = BatchScheduler(settings.predict_threads, self._decode, send)
        self._loader = threading.Thread(target=self._keep_loading, name="loader", daemon=True)
        self._loader.start()

    def take(self, message: ToProcess, *, may_work: bool = False) -> None:
        """Returns at once, unless the caller offers to do the work."""
        with self._lock:
            self._used_at = time.monotonic()
            model = self._models.get(message.model)
            if model is None:
                self._load_later(message)
        if model is not None and isinstance(message, PredictRequest):
            self._batches.put(Request(message, model), may_work=may_work)

    @property
    def is_idle(self) -> bool:
        """Nothing is loaded, or about to be, and nobody has asked for a while."""
        with self._lock:
            quiet = time.monotonic() - self._used_at > self._settings.predict_idle_seconds
            return quiet and not self._models and not self._asked

    def close(self) -> None:
        self._to_load.put(None)
        self._loader.join()
        self._batches.close()

    def _load_later(self, message: ToProcess) -> None:
        if message.model not in self._asked:
            self._asked[message.model] = []
            self._to_load.put(message.model)
        if isinstance(message, PredictRequest):
            self._asked[message.model].append(message)

    def _keep_loading(self) -> None:
        while True:
            try:
                files = self._to_load.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                with self._lock:
                    self._tell_unloaded(list(self._models.drop_idle()), "idle")
                continue
            if files is None:
                return
            self._load(files)

    def _load(self, files: ModelFiles) -> None:
        started = time.monotonic()
        try:
            model = self._models.load(files)
            _ = model.home.backbone.backend  # made now, not when the first image waits for it
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            problem = _as_service_error(error)
            with self._lock:
                asks = self._asked.pop(files)
            self._send(LoadFailed(model=files, error=problem))
            for ask in asks:
                self._send(PredictFailure(id=ask.id, error=problem))
            return
        with self._lock:
            asks = self._asked.pop(files)
            self._models.keep(model)
            self._tell_unloaded(list(self._models.drop_surplus()), "space")
            used = self._models.bytes
        seconds, backend = time.monotonic() - started, model.home.backbone.backend.name
        self._send(Loaded(model=files, bytes=used, seconds=seconds, backend=backend))
        for ask in asks:
            self._batches.put(Request(ask, model))

    def _tell_unloaded(self, models: list[ServedModel], reason: str) -> None:
        for model in models:
            self._send(Unloaded(model=model.files, bytes=self._models.bytes, reason=reason))

    def _decode(self, data: bytes, preprocessing: "Preprocessing") -> "Tensor":
        limit = self._settings.max_image_bytes
        if len(data) > limit:
            raise ImageTooLarge(f"Larger than {limit:,} bytes.")
        import torch

        if torch.get_num_threads() != 1:  # several images are resized at once
            torch.set_num_threads(1)
        square = self._decoders.cut_square(data, preprocessing.square)
        pixels = torch.empty((preprocessing.size, preprocessing.size, 3), dtype=torch.uint8)
        preprocessing.fill(pixels, square)
        return pixels


def _as_service_error(error: Exception) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    log.error("model_not_loaded", exc_info=error)
    return PredictorUnavailable(f"The model cannot be loaded: {error}"[:300])
