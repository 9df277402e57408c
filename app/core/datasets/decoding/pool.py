"""A pool of decoder processes, shared by the threads of this process."""

import atexit
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

from app.core.datasets.decoding.client import PROGRAM, DecoderDied, DecoderProcess, DecodingTooSlow
from app.core.datasets.decoding.headers import DecodeLimits, is_cheap_jpeg
from app.core.datasets.decoding.tasks import TaskResult, run_task
from app.core.datasets.images import ImageFacts, sniff
from app.core.platform.errors import (
    ImageRejected,
    ImageTooLarge,
    ImageUndecodable,
    UnsupportedFormat,
)
from app.core.platform.settings import Settings
from temi.backbones.cropping import CentralSquare

_ATTEMPTS = 2  # the process may be killed for another reason than the image
_SLOW_SECONDS = 0.5
_ERRORS: dict[str, type[ImageRejected]] = {
    kind.code: kind for kind in (ImageUndecodable, ImageTooLarge, UnsupportedFormat)
}
log = structlog.get_logger()


class DecoderPool:
    """Up to `processes` decode at the same time.

    A JPEG whose header bounds its cost is decoded in the calling thread: sending it to a process
    would double the time. A slow image releases its slot early, so that it does not delay others;
    there are up to as many additional processes for slow images.
    """

    def __init__(
        self, processes: int, limits: DecodeLimits, program: Sequence[str] = PROGRAM
    ) -> None:
        self.limits = limits
        self._program = program
        self._slots = _Slots(processes)
        self._max_idle = processes
        self._idle: list[DecoderProcess] = []
        self._all: set[DecoderProcess] = set()
        self._lock = threading.Lock()  # for the two above
        # The kernel kills a child when the thread that started it ends: this thread stays.
        self._starter = ThreadPoolExecutor(1, "decoder-starter")

    def inspect(self, data: bytes) -> ImageFacts:
        """Size and format of the image, after all of it was decoded; raises ImageRejected."""
        response, _ = self._run({"task": "inspect"}, data)
        return ImageFacts(**response)

    def inspect_all(self, images: Sequence[bytes]) -> list[ImageFacts | ImageRejected]:
        """Like `inspect` for each; faster for small images, which one process decodes together.

        The limits of one image apply to all of them together. Those that were not decoded within
        them, or are refused, are decoded again one by one: what one image gets does not depend on
        the others.
        """
        if len(images) == 1:
            return [self._inspect_or_refuse(images[0])]
        request = {"task": "inspect_all", "sizes": [len(data) for data in images]}
        slot = self._slots.acquire()
        try:
            response, _ = self._attempt(request, b"".join(images), slot)
        except ImageUndecodable:  # too slow together, or one crashes the decoder
            response = {"facts": [None] * len(images)}
        finally:
            slot.release()
        return [
            self._inspect_or_refuse(data) if facts is None else ImageFacts(**facts)
            for data, facts in zip(images, response["facts"], strict=True)
        ]

    def _inspect_or_refuse(self, data: bytes) -> ImageFacts | ImageRejected:
        try:
            return self.inspect(data)
        except ImageRejected as error:
            return error

    def cut_square(self, data: bytes, square: CentralSquare) -> npt.NDArray[np.uint8]:
        """(side, side, 3): the part that a backbone uses; see `Preprocessing.fill`."""
        request = {"task": "square", "square": {"size": square.size, "resize": square.resize}}
        response, result = self._run(request, data)
        side = response["side"]
        return np.frombuffer(result, dtype=np.uint8).reshape(side, side, 3)

    def make_thumbnail(self, data: bytes, size: int) -> bytes:
        _, result = self._run({"task": "thumbnail", "size": size}, data)
        return bytes(result)

    def prepare(self) -> None:
        """Starts the processes in the background, before the first image needs one."""
        for _ in range(self._max_idle):
            self._starter.submit(self._add)

    def pids(self) -> list[int]:
        with self._lock:
            return sorted(process.pid for process in self._all)

    def close(self) -> None:
        """Kills all processes, also busy ones."""
        self._starter.shutdown(cancel_futures=True)
        with self._lock:
            idle, self._idle, self._max_idle = self._idle, [], 0
            for process in self._all:
                process.kill()
        for process in idle:
            self._end(process)

    def _run(self, request: dict[str, Any], data: bytes) -> TaskResult:
        sniff(data)  # refuses other files before a slot is used
        slot = self._slots.acquire()
        try:
            if is_cheap_jpeg(data):
                response, result = run_task(request, data, self.limits)
            else:
                response, result = self._attempt(request, data, slot)
        finally:
            slot.release()
        if "code" in response:
            raise _ERRORS[response["code"]](response["detail"])
        return response, result

    def _attempt(self, request: dict[str, Any], data: bytes, slot: "_Slot") -> TaskResult:
        for attempt in range(_ATTEMPTS):
            process = self._take(fresh=attempt > 0)
            try:
                found = process.run(
                    request,
                    data,
                    self.limits,
                    slow_seconds=_SLOW_SECONDS,
                    on_slow=slot.release_early,
                )
            except DecodingTooSlow as error:
                self._replace(process)
                seconds = f"{self.limits.seconds:g} s"
                detail = f"The image took longer than {seconds} to decode."
                raise ImageUndecodable(detail) from error
            except DecoderDied as error:
                self._replace(process)
                reason = str(error)
                log.warning("decoder_died", reason=reason, attempt=attempt + 1)
            except BaseException:
                self._replace(process)
                raise
            else:
                self._give_back(process)
                return found
        raise ImageUndecodable(f"The image crashes the decoder ({reason}).")

    def _take(self, *, fresh: bool) -> DecoderProcess:
        with self._lock:
            if self._idle and not fresh:
                return self._idle.pop()
        return self._starter.submit(self._start).result()

    def _start(self) -> DecoderProcess:
        process = DecoderProcess(self._program)
        try:
            process.wait_until_ready()
        except BaseException:
            process.end()
            raise
        with self._lock:
            self._all.add(process)
        return process

    def _replace(self, process: DecoderProcess) -> None:
        """Starts another in the background, so that the next image does not wait for it."""
        self._end(process)
        with self._lock, suppress(RuntimeError):  # if the pool is closed
            if len(self._idle) < self._max_idle:
                self._starter.submit(self._add)

    def _add(self) -> None:
        try:
            self._give_back(self._start())
        except (OSError, DecoderDied) as error:  # the next image starts one, and raises
            log.warning("decoder_start_failed", reason=str(error))

    def _give_back(self, process: DecoderProcess) -> None:
        with self._lock:
            keep = len(self._idle) < self._max_idle and not process.must_restart
            if keep:
                self._idle.append(process)
        if not keep:
            self._end(process)

    def _end(self, process: DecoderProcess) -> None:
        with self._lock:
            self._all.discard(process)
        process.end()


@dataclass
class _Slots:
    """A semaphore whose slots can be released early, up to a limit."""

    size: int
    used: int = 0
    released_early: int = 0

    def __post_init__(self) -> None:
        self.changed = threading.Condition()

    def acquire(self) -> "_Slot":
        with self.changed:
            while self.used >= self.size:
                self.changed.wait()
            self.used += 1
        return _Slot(self)


class _Slot:
    def __init__(self, slots: _Slots) -> None:
        self._slots = slots
        self._released_early = False

    def release_early(self) -> None:
        slots = self._slots
        with slots.changed:
            if self._released_early or slots.released_early >= slots.size:
                return
            self._released_early = True
            slots.released_early += 1
            slots.used -= 1
            slots.changed.notify()

    def release(self) -> None:
        slots = self._slots
        with slots.changed:
            if self._released_early:
                slots.released_early -= 1
            else:
                slots.used -= 1
                slots.changed.notify()


def decoder_pool(settings: Settings, processes: int | None = None) -> DecoderPool:
    """The pool of this process for these limits."""
    limits = DecodeLimits(
        pixels=settings.max_image_pixels,
        bytes=settings.decode_bytes,
        seconds=settings.decode_seconds,
    )
    return _shared_pool(processes or settings.threads, limits)


@cache
def _shared_pool(processes: int, limits: DecodeLimits) -> DecoderPool:
    pool = DecoderPool(processes, limits)
    atexit.register(pool.close)
    return pool
