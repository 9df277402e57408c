"""The prediction process's engine: loads models and passes requests to the batch scheduler."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import structlog

from app.core.datasets.decoding.pool import decoder_pool
from app.core.models.conversion import load_served_model
from app.core.models.files import ModelFiles
from app.core.platform.errors import ImageTooLarge, PredictorUnavailable, ServiceError
from app.core.platform.memory import release_memory
from app.core.platform.settings import Settings
from app.core.serving.batching import BatchScheduler, ScheduledRequest
from app.core.serving.messages import (
    EmbedTexts,
    Loaded,
    LoadFailed,
    LoadModel,
    PredictFailure,
    PredictRequest,
    ToProcess,
    Unloaded,
)
from app.core.serving.models import LoadedModels, ServedModel
from app.core.serving.texts import TextEmbedder

if TYPE_CHECKING:
    from temi.backbones.extractor import FeatureExtractor
    from temi.backbones.preprocessing import Pixels, Preprocessing

_IDLE_CHECK_SECONDS = 1.0  # between checks for idle models
log = structlog.get_logger()


class Predictor:
    """Calls `send` with one or more response messages, from any thread."""

    def __init__(self, settings: Settings, send: Callable[..., None]) -> None:
        self._settings = settings
        self._send = send
        self._decoders = decoder_pool(settings, settings.predict_threads)
        self._decoders.prepare()
        self._lock = threading.Lock()  # protects the two below
        self._models = LoadedModels(
            partial(load_served_model, settings=settings),
            max_bytes=settings.predict_cache_bytes,
            idle_seconds=settings.predict_idle_seconds,
        )
        self._pending: dict[ModelFiles, list[PredictRequest]] = {}  # by model that is loading
        self._load_queue: queue.SimpleQueue[ModelFiles | None] = queue.SimpleQueue()
        self._used_at = time.monotonic()
        self._scheduler = BatchScheduler(settings.predict_threads, self._decode, send)
        self._texts = TextEmbedder(settings, send)
        self._loader = threading.Thread(target=self._run_loader, name="loader", daemon=True)
        self._loader.start()

    def handle(self, message: ToProcess, *, run_inline: bool = False) -> None:
        """Returns at once; with `run_inline` the calling thread may compute the prediction."""
        with self._lock:
            self._used_at = time.monotonic()
        if isinstance(message, EmbedTexts):
            self._texts.submit(message)
            return
        with self._lock:
            model = self._models.get(message.model)
            if model is None:
                self._load_later(message)
        if model is not None and isinstance(message, PredictRequest):
            self._scheduler.submit(ScheduledRequest(message, model), run_inline=run_inline)

    @property
    def is_idle(self) -> bool:
        """No model is loaded or loading, and the last request is long ago."""
        with self._lock:
            quiet = time.monotonic() - self._used_at > self._settings.predict_idle_seconds
            return quiet and not self._models and not self._pending

    def close(self) -> None:
        self._load_queue.put(None)
        self._loader.join()
        self._scheduler.close()
        self._texts.close()

    def _load_later(self, message: LoadModel | PredictRequest) -> None:
        if message.model not in self._pending:
            self._pending[message.model] = []
            self._load_queue.put(message.model)
        if isinstance(message, PredictRequest):
            self._pending[message.model].append(message)

    def _run_loader(self) -> None:
        while True:
            try:
                files = self._load_queue.get(timeout=_IDLE_CHECK_SECONDS)
            except queue.Empty:
                self._unload(self._models.drop_idle(), "idle")
                continue
            if files is None:
                return
            self._load(files)

    def _load(self, files: ModelFiles) -> None:
        started = time.monotonic()
        try:
            model = self._models.load(files)
            self._warm_up(model.shared.backbone)
        except Exception as error:  # noqa: BLE001 - the requests that wait get the error
            failure = _as_service_error(error)
            with self._lock:
                pending = self._pending.pop(files)
            self._send(LoadFailed(model=files, error=failure))
            for request in pending:
                self._send(PredictFailure(id=request.id, error=failure))
            return
        with self._lock:
            pending = self._pending.pop(files)
            self._models.add(model)
        self._unload(self._models.drop_surplus(), "space")
        with self._lock:
            used = self._models.bytes
        seconds, backend = time.monotonic() - started, model.shared.backbone.backend.name
        self._send(Loaded(model=files, bytes=used, seconds=seconds, backend=backend))
        for request in pending:
            self._scheduler.submit(ScheduledRequest(request, model))

    def _warm_up(self, backbone: "FeatureExtractor") -> None:
        """Creates the sessions for one core and for all, before an image waits for them."""
        pixels = backbone.preprocessing.new_batch(1)
        for threads in {1, self._settings.predict_threads}:
            backbone.backend.embed(pixels, threads)

    def _unload(self, dropped: Iterator[ServedModel], reason: str) -> None:
        with self._lock:
            files = [model.files for model in dropped]
            used = self._models.bytes
        for model in files:
            self._send(Unloaded(model=model, bytes=used, reason=reason))
        if files:
            release_memory()

    def _decode(self, data: bytes, preprocessing: "Preprocessing") -> "Pixels":
        limit = self._settings.max_image_bytes
        if len(data) > limit:
            raise ImageTooLarge(f"The image has {len(data):,} bytes; the limit is {limit:,}.")
        square = self._decoders.cut_square(data, preprocessing.square)
        pixels: Pixels = preprocessing.new_batch(1)[0]
        preprocessing.fill(pixels, square)
        return pixels


def _as_service_error(error: Exception) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    log.error("model_load_failed", exc_info=error)
    return PredictorUnavailable(f"The model cannot be loaded: {error}"[:300])
