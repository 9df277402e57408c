"""The API's side: one process that computes, started when it is needed and again if it dies."""

import asyncio
import itertools
import multiprocessing
import os
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

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
from app.core.platform.settings import Settings
from app.core.serving import process as child
from app.core.serving.admission import Admission
from app.core.serving.ipc import IpcChannel, pack
from app.core.serving.loop_lag import ServingObserver
from app.core.serving.messages import (
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

_MOST_SENDS = 2  # of one message: what was under way when a process died is tried once more
_RESTART_SECONDS = 0.5
_PREPARE_SECONDS = 120.0
_DIED = "The process that computes died; a new one starts with the next request."
log = structlog.get_logger()

Result = list[Outcome] | None


@dataclass(frozen=True, eq=False)
class _Child:
    process: BaseProcess
    wire: IpcChannel


@dataclass(eq=False)
class _Open:
    """A message whose answer is still to come."""

    message: ToProcess
    answer: "asyncio.Future[Result]"
    sends: int = 0


class Serving:
    """Belongs to the event loop of the first who asks; other threads may `prepare`."""

    def __init__(self, settings: Settings, watcher: ServingObserver | None = None) -> None:
        self._settings = settings
        self._watcher = watcher or ServingObserver()
        self.admission = Admission(
            settings.predict_queue,
            settings.predict_queue_bytes,
            settings.predict_arriving_bytes,
            settings.predict_key_share,
        )
        self._ids = itertools.count(1)
        self._open: dict[int | ModelFiles, _Open] = {}
        self._loaded: dict[ModelFiles, Loaded] = {}
        self._child: _Child | None = None
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
        """In the order of the images."""
        seconds = min(seconds or self._settings.predict_seconds, self._settings.predict_seconds)
        ready = model in self._loaded
        self._watcher.cache("hit" if ready else "miss")
        if not ready:
            self.load(model)
            seconds = min(seconds, self._settings.predict_load_seconds)
        ask = PredictRequest(
            id=next(self._ids),
            model=model,
            deadline=time.monotonic() + seconds,
            images=tuple(images),
            features=features,
        )
        try:
            with tracing.span("predict", folder=model.folder, images=len(images), loaded=ready):
                async with asyncio.timeout(seconds):
                    outcomes = await self._send(ask.id, ask)
        except TimeoutError:
            if model in self._loaded:
                raise DeadlineExceeded("Its turn did not come in time; try again.") from None
            raise ModelLoading("The model is still being loaded; try again.") from None
        finally:
            self._open.pop(ask.id, None)
        assert outcomes is not None
        return outcomes

    def load(self, model: ModelFiles) -> "asyncio.Future[Result]":
        """Done when the model answers; fails with what is wrong with it. Many share it: whoever
        waits for it shields it."""
        if model in self._open:
            return self._open[model].answer
        if model in self._loaded:
            done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        loading = self._send(model, LoadModel(model=model))
        loading.add_done_callback(_take_note)
        return loading

    def prepare(self, model: ModelFiles) -> None:
        """Before an alias moves to it: refuses a version whose files are not what they were, and
        has it loaded if this process is answering at all. Waits for that, in another thread."""
        verify_files(open_storage(self._settings), model)
        if not self._loaded or self._loop is None:
            return

        async def load() -> None:
            await asyncio.shield(self.load(model))

        with suppress(TimeoutError):  # then it is loaded when the first one asks
            asyncio.run_coroutine_threadsafe(load(), self._loop).result(_PREPARE_SECONDS)

    def is_loaded(self, model: ModelFiles) -> bool:
        return model in self._loaded

    def loaded(self) -> list[Loaded]:
        return list(self._loaded.values())

    def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        if self._child is not None:
            ended, self._child = self._child, None
            ended.process.kill()
            ended.process.join()
            ended.wire.hang_up()

    def _send(self, key: int | ModelFiles, message: ToProcess) -> "asyncio.Future[Result]":
        loop = self._loop = asyncio.get_running_loop()
        opened = self._open[key] = _Open(message, loop.create_future())
        if self._child is not None:
            self._pass_on(opened, self._child)
        elif self._starting is None:
            self._starting = asyncio.create_task(self._start())
        return opened.answer

    def _pass_on(self, opened: _Open, to: _Child) -> None:
        opened.sends += 1
        to.wire.send(pack(opened.message))

    async def _start(self) -> None:
        """All that is open by then goes to the new process."""
        try:
            await asyncio.sleep(self._started_at + _RESTART_SECONDS - time.monotonic())
            self._started_at = time.monotonic()
            process, connection = self._start_process()
            wire = await IpcChannel.over(connection, self._hear, self._bury)
        except OSError as error:  # no memory, no processes left
            log.exception("serving_process_not_started")
            self._fail(self._open, PredictorUnavailable(f"It cannot be started: {error}"[:300]))
        else:
            self._child = _Child(process, wire)
            for opened in list(self._open.values()):
                self._pass_on(opened, self._child)
        finally:
            self._starting = None

    def _start_process(self) -> tuple[BaseProcess, socket.socket]:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        ours, theirs = socket.socketpair()
        with theirs:
            process = context.Process(  # a daemon: nobody waits for it at the end
                target=child.main,
                args=(self._settings, theirs, os.getpid()),
                name="temi-serving",
                daemon=True,
            )
            process.start()
        return process, ours

    def _bury(self, wire: IpcChannel) -> None:
        """What it still owed goes to its successor, once."""
        if self._child is None or self._child.wire is not wire:
            return  # closed on purpose
        self._child.process.kill()  # hung up, and of no use if it lives
        self._child = None
        self._loaded.clear()
        if not self._open:
            return
        log.error("serving_process_died", owed=len(self._open))
        lost = [key for key, opened in self._open.items() if opened.sends >= _MOST_SENDS]
        self._fail(lost, PredictorUnavailable(_DIED))
        if self._open:
            self._starting = asyncio.create_task(self._start())

    def _hear(self, messages: Sequence[FromProcess]) -> None:
        for message in messages:
            match message:
                case PredictResult():
                    self._settle(message.id, message.outcomes)
                    for batch in message.batches:
                        self._watcher.batch(batch.size, batch.wait_seconds, batch.compute_seconds)
                case PredictFailure():
                    self._fail([message.id], message.error)
                case Loaded():
                    self._note_loaded(message)
                case LoadFailed():
                    self._fail([message.model], message.error)
                case Unloaded():
                    self._loaded.pop(message.model, None)
                    self._watcher.unloaded(message.reason)
                    self._watcher.loaded(len(self._loaded), message.bytes)

    def _note_loaded(self, message: Loaded) -> None:
        self._loaded[message.model] = message
        self._settle(message.model, None)
        self._watcher.loaded(len(self._loaded), message.bytes)
        self._watcher.load_seconds(message.seconds)
        log.info(
            "model_loaded",
            folder=message.model.folder,
            seconds=message.seconds,
            backend=message.backend,
            precision=message.model.precision,
        )

    def _settle(self, key: int | ModelFiles, result: Result) -> None:
        opened = self._open.pop(key, None)
        if opened is not None and not opened.answer.done():  # else nobody waits any more
            opened.answer.set_result(result)

    def _fail(self, keys: Iterable[int | ModelFiles], error: ServiceError) -> None:
        for key in list(keys):
            opened = self._open.pop(key, None)
            if opened is not None and not opened.answer.done():
                opened.answer.set_exception(error)


def _take_note(loading: "asyncio.Future[Result]") -> None:
    """Those who wait are told themselves: no need to complain that nobody looked."""
    if not loading.cancelled():
        loading.exception()
