"""The API's side of serving: starts the prediction process on demand, and again if it dies."""

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

from app.core.models.files import ModelFiles, verify_files
from app.core.platform import tracing
from app.core.platform.errors import (
    DeadlineExceeded,
    ModelLoading,
    PredictorUnavailable,
    ServiceError,
)
from app.core.platform.processes import import_paths
from app.core.platform.settings import Settings
from app.core.serving.admission import Admission
from app.core.serving.ipc import IpcChannel, pack
from app.core.serving.messages import (
    Embedded,
    EmbedTexts,
    FromProcess,
    Loaded,
    LoadFailed,
    LoadModel,
    Outcome,
    PredictFailure,
    PredictRequest,
    PredictResult,
    ToProcess,
    Unloaded,
)
from app.core.storage import open_storage

_MAX_SENDS = 2  # of one message: what a process had not answered when it died is sent once more
_RESTART_SECONDS = 0.5
_PREPARE_SECONDS = 120.0
_PROGRAM = ("-m", "app.core.serving")
_DIED = "The prediction process died; a new one starts with the next request."
log = structlog.get_logger()

Result = list[Any] | None  # outcomes or features; None if a model was loaded


class ServingObserver:
    """Is told what happens, for metrics. This one ignores it."""

    def batch(self, size: int, wait_seconds: float, compute_seconds: float) -> None: ...

    def cache(self, result: str) -> None: ...

    def loaded(self, models: int, bytes_: int) -> None: ...

    def unloaded(self, reason: str) -> None: ...

    def load_seconds(self, seconds: float) -> None: ...


@dataclass(frozen=True, eq=False)
class _PredictionProcess:
    process: subprocess.Popen[bytes]
    channel: IpcChannel


@dataclass(eq=False)
class _Pending:
    """A message without an answer yet."""

    message: ToProcess
    answer: "asyncio.Future[Result]"
    sends: int = 0


class Serving:
    """Belongs to the event loop of the first request; other threads may call `prepare`."""

    def __init__(self, settings: Settings, observer: ServingObserver | None = None) -> None:
        self._settings = settings
        self._observer = observer or ServingObserver()
        self.admission = Admission(
            settings.predict_queue,
            settings.predict_queue_bytes,
            settings.predict_arriving_bytes,
            settings.predict_key_share,
        )
        self._ids = itertools.count(1)
        self._pending: dict[int | ModelFiles, _Pending] = {}
        self._loaded: dict[ModelFiles, Loaded] = {}
        self._running: _PredictionProcess | None = None
        self._starting: asyncio.Task[None] | None = None
        self._started_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    async def predict(
        self,
        model: ModelFiles,
        images: Sequence[bytes] = (),
        *,
        features: npt.NDArray[np.float32] | None = None,
        seconds: float | None = None,
    ) -> list[Outcome]:
        """Returns the outcomes in the order of the inputs."""
        return await self._request(model, images, features=features, seconds=seconds)

    async def embed(
        self, model: ModelFiles, images: Sequence[bytes], *, seconds: float | None = None
    ) -> list[Embedded]:
        """Returns the features of the images, in their order."""
        return await self._request(model, images, embed_only=True, seconds=seconds)

    async def _request(
        self,
        model: ModelFiles,
        images: Sequence[bytes],
        *,
        features: npt.NDArray[np.float32] | None = None,
        embed_only: bool = False,
        seconds: float | None,
    ) -> list[Any]:
        seconds = min(seconds or self._settings.predict_seconds, self._settings.predict_seconds)
        ready = model in self._loaded
        self._observer.cache("hit" if ready else "miss")
        if not ready:
            self.load(model)
            seconds = min(seconds, self._settings.predict_load_seconds)
        request = PredictRequest(
            id=next(self._ids),
            model=model,
            deadline=time.monotonic() + seconds,
            images=tuple(images),
            features=features,
            embed_only=embed_only,
        )
        try:
            with tracing.span("predict", folder=model.folder, images=len(images), loaded=ready):
                async with asyncio.timeout(seconds):
                    outcomes = await self._send(request.id, request)
        except TimeoutError:
            if model in self._loaded:
                raise DeadlineExceeded(
                    f"The prediction took longer than {seconds:g} s; retry, or send fewer images."
                ) from None
            raise ModelLoading("The model is still loading; retry.") from None
        finally:
            self._pending.pop(request.id, None)
        assert outcomes is not None
        return outcomes

    async def embed_texts(
        self, model: ModelFiles, texts: Sequence[str]
    ) -> list[npt.NDArray[np.float32]]:
        """Returns the vectors of the texts; the first wait until the text encoder is loaded."""
        seconds = self._settings.predict_load_seconds + self._settings.predict_seconds
        request = EmbedTexts(
            id=next(self._ids),
            model=model,
            deadline=time.monotonic() + seconds,
            texts=tuple(texts),
        )
        try:
            async with asyncio.timeout(seconds):
                outcomes = await self._send(request.id, request)
        except TimeoutError:
            raise DeadlineExceeded(
                f"The text took longer than {seconds:g} s to embed; retry."
            ) from None
        finally:
            self._pending.pop(request.id, None)
        return [row for row in outcomes or [] if isinstance(row, np.ndarray)]

    def load(self, model: ModelFiles) -> "asyncio.Future[Result]":
        """Returns a future that is done when the model is loaded, or fails with the reason. It is
        shared: shield it when you wait for it."""
        if model in self._pending:
            return self._pending[model].answer
        if model in self._loaded:
            done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        loading = self._send(model, LoadModel(model=model))
        loading.add_done_callback(_retrieve_exception)
        return loading

    def prepare(self, model: ModelFiles) -> None:
        """Called in another thread before an alias moves: raises if a file does not match its
        hash, and waits until the model is loaded if this process serves predictions."""
        verify_files(open_storage(self._settings), model)
        if not self._loaded or self._loop is None:
            return

        async def load() -> None:
            await asyncio.shield(self.load(model))

        with suppress(TimeoutError):  # then the first request loads it
            asyncio.run_coroutine_threadsafe(load(), self._loop).result(_PREPARE_SECONDS)

    def is_loaded(self, model: ModelFiles) -> bool:
        return model in self._loaded

    def loaded(self) -> list[Loaded]:
        return list(self._loaded.values())

    def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        if self._running is not None:
            ended, self._running = self._running, None
            ended.process.kill()
            ended.process.wait()
            ended.channel.close()

    def _send(self, key: int | ModelFiles, message: ToProcess) -> "asyncio.Future[Result]":
        loop = self._loop = asyncio.get_running_loop()
        pending = self._pending[key] = _Pending(message, loop.create_future())
        if self._running is not None:
            self._transmit(pending, self._running)
        elif self._starting is None:
            self._starting = asyncio.create_task(self._start())
        return pending.answer

    def _transmit(self, pending: _Pending, to: _PredictionProcess) -> None:
        pending.sends += 1
        to.channel.send(pack(pending.message))

    async def _start(self) -> None:
        """Starts a process and sends it all pending messages."""
        try:
            await asyncio.sleep(self._started_at + _RESTART_SECONDS - time.monotonic())
            self._started_at = time.monotonic()
            process, connection = self._start_process()
            channel = await IpcChannel.connect(connection, self._on_messages, self._on_exit)
        except OSError as error:  # no memory, no processes left
            log.exception("prediction_process_start_failed")
            detail = f"The prediction process cannot be started: {error}"
            self._fail(self._pending, PredictorUnavailable(detail[:300]))
        else:
            self._running = _PredictionProcess(process, channel)
            for pending in list(self._pending.values()):
                self._transmit(pending, self._running)
        finally:
            self._starting = None

    def _start_process(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, *_PROGRAM, str(theirs.fileno()), str(os.getpid())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=os.environ | import_paths(),
                )
            ours.sendall(pack(self._settings))
        except BaseException:
            ours.close()
            raise
        return process, ours

    def _on_exit(self, channel: IpcChannel) -> None:
        """Sends what the process has not answered to the next one, once."""
        if self._running is None or self._running.channel is not channel:
            return  # closed on purpose
        self._running.process.kill()  # it may live, but without a channel it is of no use
        threading.Thread(target=self._running.process.wait, daemon=True).start()
        self._running = None
        self._loaded.clear()
        if not self._pending:
            return
        log.error("prediction_process_died", pending=len(self._pending))
        lost = [key for key, pending in self._pending.items() if pending.sends >= _MAX_SENDS]
        self._fail(lost, PredictorUnavailable(_DIED))
        if self._pending:
            self._starting = asyncio.create_task(self._start())

    def _on_messages(self, messages: Sequence[FromProcess]) -> None:
        for message in messages:
            match message:
                case PredictResult():
                    self._settle(message.id, message.outcomes)
                    for batch in message.batches:
                        self._observer.batch(batch.size, batch.wait_seconds, batch.compute_seconds)
                case PredictFailure():
                    self._fail([message.id], message.error)
                case Loaded():
                    self._on_loaded(message)
                case LoadFailed():
                    self._fail([message.model], message.error)
                case Unloaded():
                    self._loaded.pop(message.model, None)
                    self._observer.unloaded(message.reason)
                    self._observer.loaded(len(self._loaded), message.bytes)

    def _on_loaded(self, message: Loaded) -> None:
        self._loaded[message.model] = message
        self._settle(message.model, None)
        self._observer.loaded(len(self._loaded), message.bytes)
        self._observer.load_seconds(message.seconds)
        log.info(
            "model_loaded",
            folder=message.model.folder,
            seconds=message.seconds,
            backend=message.backend,
            precision=message.model.precision,
        )

    def _settle(self, key: int | ModelFiles, result: Result) -> None:
        pending = self._pending.pop(key, None)
        if pending is not None and not pending.answer.done():  # else the caller has given up
            pending.answer.set_result(result)

    def _fail(self, keys: Iterable[int | ModelFiles], error: ServiceError) -> None:
        for key in list(keys):
            pending = self._pending.pop(key, None)
            if pending is not None and not pending.answer.done():
                pending.answer.set_exception(error)


def _retrieve_exception(loading: "asyncio.Future[Result]") -> None:
    """Each caller handles the error itself: asyncio need not log that it was never retrieved."""
    if not loading.cancelled():
        loading.exception()
