"""The API's side: one process that computes, started when it is needed and again if it dies."""

import asyncio
import itertools
import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np
import numpy.typing as npt
import structlog

from app.core import tracing
from app.core.errors import DeadlineExceeded, ModelLoading, PredictorUnavailable, ServiceError
from app.core.serving import child
from app.core.serving.admission import Admission
from app.core.serving.files import ModelFiles, verify_files
from app.core.serving.messages import (
    Answer,
    Ask,
    FromChild,
    Load,
    Loaded,
    NotLoaded,
    Outcome,
    Refusal,
    ToChild,
    Unloaded,
)
from app.core.serving.watching import Watcher
from app.core.settings import Settings
from app.core.storage import LocalStorage

_MOST_SENDS = 2  # of one message: what was under way when a process died is tried once more
_RESTART_SECONDS = 0.5
_PREPARE_SECONDS = 120.0
_FITS_THE_PIPE = 64 * 1024
log = structlog.get_logger()


@dataclass(eq=False)
class _Child:
    process: BaseProcess
    connection: Connection
    lock: threading.Lock = field(default_factory=threading.Lock)  # of sending


Result = list[Outcome] | ServiceError | None


@dataclass(eq=False)
class _Open:
    """A message whose answer is still to come."""

    message: ToChild
    settle: Callable[[Result], None]
    child: _Child | None = None
    sends: int = 0

    @property
    def size(self) -> int:
        return sum(map(len, self.message.images)) if isinstance(self.message, Ask) else 0


class Serving:
    """Threads may call it at once; nothing but `prepare` waits for the other process."""

    def __init__(self, settings: Settings, watcher: Watcher | None = None) -> None:
        self._settings = settings
        self._watcher = watcher or Watcher()
        self.admission = Admission(settings.predict_queue, settings.predict_queue_bytes)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()  # of all below
        self._open: dict[int | ModelFiles, _Open] = {}
        self._loading: dict[ModelFiles, Future[None]] = {}
        self._loaded: dict[ModelFiles, Loaded] = {}
        self._child: _Child | None = None
        self._outbox: queue.SimpleQueue[_Open | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._started_at = 0.0

    async def predict(
        self,
        model: ModelFiles,
        images: Sequence[bytes] = (),
        *,
        features: npt.NDArray[np.float32] | None = None,
        sample: tuple[str, ...] = (),
        seconds: float | None = None,
    ) -> list[Outcome]:
        """In the order of the images; `sample` are keys of pictures to tune the model with."""
        seconds = min(seconds or self._settings.predict_seconds, self._settings.predict_seconds)
        ready = model in self._loaded
        self._watcher.cache("hit" if ready else "miss")
        if not ready:
            self.load(model, sample)
            seconds = min(seconds, self._settings.predict_load_seconds)
        ask = Ask(
            id=next(self._ids),
            model=model,
            deadline=time.monotonic() + seconds,
            images=tuple(images),
            features=features,
        )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._send(ask.id, _Open(ask, partial(_settle_in, loop, future)))
        try:
            with tracing.span("predict", folder=model.folder, images=len(images), loaded=ready):
                async with asyncio.timeout(seconds):
                    result = await future
        except TimeoutError:
            if model in self._loaded:
                raise DeadlineExceeded("Its turn did not come in time; try again.") from None
            raise ModelLoading("The model is still being loaded; try again.") from None
        finally:
            with self._lock:
                self._open.pop(ask.id, None)
        if isinstance(result, ServiceError):
            raise result
        assert result is not None
        return result

    def load(self, model: ModelFiles, sample: tuple[str, ...] = ()) -> "Future[None]":
        """Done when the model answers; fails with what is wrong with it."""
        with self._lock:
            future = self._loading.get(model)
            if future is not None:
                return future
            future = Future()
            if model in self._loaded:
                future.set_result(None)
                return future
            self._loading[model] = future
        self._send(model, _Open(Load(model=model, sample=sample), partial(self._end_load, model)))
        return future

    def prepare(self, model: ModelFiles, sample: tuple[str, ...] = ()) -> None:
        """Before an alias moves to it: refuses a version whose files are not what they were, and
        has it loaded if this process is answering at all. Waits for that."""
        verify_files(LocalStorage(self._settings.blob_dir), model)
        if self._loaded:
            with suppress(TimeoutError):  # then it is loaded when the first one asks
                self.load(model, sample).result(_PREPARE_SECONDS)

    def is_loaded(self, model: ModelFiles) -> bool:
        return model in self._loaded

    def loaded(self) -> list[Loaded]:
        with self._lock:
            return list(self._loaded.values())

    def close(self) -> None:
        with self._lock:
            ended, self._child = self._child, None
            writer, self._writer = self._writer, None
        if writer is not None:
            self._outbox.put(None)
            writer.join()
        if ended is not None:
            ended.process.kill()
            ended.process.join()
            ended.connection.close()

    def _send(self, key: int | ModelFiles, opened: _Open) -> None:
        with self._lock:
            self._open[key] = opened
            alone = len(self._open) == 1
            running = self._child
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="serving", daemon=True)
                self._writer.start()
        # One alone need not wait for another thread; in a crowd nobody waits for a full pipe.
        if alone and running is not None and opened.size <= _FITS_THE_PIPE:
            self._pass_on(opened, running)
        else:
            self._outbox.put(opened)

    def _write(self) -> None:
        """Starts the other process, too: it ends with the thread that started it."""
        while (opened := self._outbox.get()) is not None:
            self._pass_on(opened, self._child or self._start())

    def _pass_on(self, opened: _Open, running: _Child) -> None:
        opened.child = running
        opened.sends += 1
        try:
            with running.lock:
                running.connection.send(opened.message)
        except OSError:
            self._bury(running)

    def _start(self) -> _Child:
        time.sleep(max(0.0, self._started_at + _RESTART_SECONDS - time.monotonic()))
        self._started_at = time.monotonic()
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        ours, theirs = context.Pipe()
        arguments = (self._settings, theirs, os.getpid())
        process = context.Process(  # a daemon: nobody waits for it at the end
            target=child.main, args=arguments, name="temi-serving", daemon=True
        )
        process.start()
        theirs.close()
        started = _Child(process, ours)
        with self._lock:
            self._child = started
        threading.Thread(target=self._read, args=(started,), daemon=True).start()
        return started

    def _read(self, running: _Child) -> None:
        try:
            while True:
                for message in running.connection.recv():
                    self._hear(message)
        except (EOFError, OSError):
            self._bury(running)

    def _bury(self, dead: _Child) -> None:
        """What it still owed goes to its successor, once."""
        with self._lock:
            if self._child is dead:
                self._child = None
                self._loaded.clear()
            elif self._writer is None:
                return  # closed on purpose
            owed = [(key, o) for key, o in self._open.items() if o.child is dead]
            for _, opened in owed:
                opened.child = None
        if owed:
            log.error("serving_process_died", owed=len(owed))
        for key, opened in owed:
            if opened.sends < _MOST_SENDS:
                self._outbox.put(opened)
            else:
                detail = "The process that computes died; a new one starts with the next request."
                self._settle(key, PredictorUnavailable(detail))

    def _hear(self, message: FromChild) -> None:
        match message:
            case Answer():
                self._settle(message.id, message.outcomes)
                for batch in message.batches:
                    self._watcher.batch(batch.size, batch.wait_seconds, batch.compute_seconds)
            case Refusal():
                self._settle(message.id, message.error)
            case Loaded():
                self._note_loaded(message)
            case NotLoaded():
                self._settle(message.model, message.error)
            case Unloaded():
                with self._lock:
                    self._loaded.pop(message.model, None)
                self._watcher.unloaded(message.reason)
                self._watcher.loaded(len(self._loaded), message.bytes)

    def _note_loaded(self, message: Loaded) -> None:
        with self._lock:
            self._loaded[message.model] = message
        self._settle(message.model, None)
        self._watcher.loaded(len(self._loaded), message.bytes)
        if message.trials:
            tried = [vars(trial) for trial in message.trials]
            log.info("form_chosen", folder=message.model.folder, form=message.form, tried=tried)
        else:
            self._watcher.load_seconds(message.seconds)
            log.info("model_loaded", folder=message.model.folder, seconds=message.seconds)

    def _end_load(self, model: ModelFiles, result: Result) -> None:
        with self._lock:
            future = self._loading.pop(model)
        if isinstance(result, ServiceError):
            future.set_exception(result)
        else:
            future.set_result(None)

    def _settle(self, key: int | ModelFiles, result: Result) -> None:
        with self._lock:
            opened = self._open.pop(key, None)
        if opened is not None:  # else nobody waits any more
            opened.settle(result)


def _settle_in(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Result]", result: Result
) -> None:
    def settle() -> None:
        if not future.done():
            future.set_result(result)

    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(settle)
