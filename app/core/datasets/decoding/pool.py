"""Several processes that decode, for all threads of this one."""

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
from app.core.datasets.decoding.tasks import Answer, answer_task
from app.core.datasets.images import ImageFacts, sniff
from app.core.platform.errors import (
    ImageRejected,
    ImageTooLarge,
    ImageUndecodable,
    UnsupportedFormat,
)
from app.core.platform.settings import Settings
from temi.backbones.cropping import CentralSquare

_ATTEMPTS = 2  # a process may be killed from outside, by no fault of the image
_SLOW_SECONDS = 0.5
_REFUSALS: dict[str, type[ImageRejected]] = {
    kind.code: kind for kind in (ImageUndecodable, ImageTooLarge, UnsupportedFormat)
}
log = structlog.get_logger()


class DecoderPool:
    """Up to `processes` decode at once.

    A JPEG whose header bounds its cost is decoded here: to hand it over would take as long again.
    An image that takes long gives its turn to another one, so that it delays no others; there are
    up to as many processes again for such images.
    """

    def __init__(
        self, processes: int, limits: DecodeLimits, program: Sequence[str] = PROGRAM
    ) -> None:
        self.limits = limits
        self._program = program
        self._turns = _Turns(processes)
        self._most_idle = processes
        self._idle: list[DecoderProcess] = []
        self._all: set[DecoderProcess] = set()
        self._lock = threading.Lock()  # of the two above
        # The kernel ends a child together with the thread that started it: this one stays.
        self._starter = ThreadPoolExecutor(1, "decoder-starter")

    def inspect(self, data: bytes) -> ImageFacts:
        """What the image is, after all of it was decoded; ImageRejected if it cannot be."""
        answer, _ = self._run({"task": "inspect"}, data)
        return ImageFacts(**answer)

    def cut_square(self, data: bytes, square: CentralSquare) -> npt.NDArray[np.uint8]:
        """(side, side, 3): the part that a backbone sees, see `Preprocessing.fill`."""
        request = {"task": "square", "square": {"size": square.size, "resize": square.resize}}
        answer, result = self._run(request, data)
        side = answer["side"]
        return np.frombuffer(result, dtype=np.uint8).reshape(side, side, 3)

    def make_thumbnail(self, data: bytes, size: int) -> bytes:
        _, result = self._run({"task": "thumbnail", "size": size}, data)
        return bytes(result)

    def prepare(self) -> None:
        """Starts the processes, so that the first image need not wait for it; returns at once."""
        for _ in range(self._most_idle):
            self._starter.submit(self._add)

    def pids(self) -> list[int]:
        with self._lock:
            return sorted(process.pid for process in self._all)

    def close(self) -> None:
        """Ends all processes, at work or not."""
        self._starter.shutdown(cancel_futures=True)
        with self._lock:
            idle, self._idle, self._most_idle = self._idle, [], 0
            for process in self._all:
                process.kill()
        for process in idle:
            self._end(process)

    def _run(self, request: dict[str, Any], data: bytes) -> Answer:
        sniff(data)  # what is no image costs nothing
        turn = self._turns.take()
        try:
            if is_cheap_jpeg(data):
                answer, result = answer_task(request, data, self.limits)
            else:
                answer, result = self._attempt(request, data, turn)
        finally:
            turn.end()
        if "code" in answer:
            raise _REFUSALS[answer["code"]](answer["detail"])
        return answer, result

    def _attempt(self, request: dict[str, Any], data: bytes, turn: "_Turn") -> Answer:
        for attempt in range(_ATTEMPTS):
            process = self._take(fresh=attempt > 0)
            try:
                found = process.run(
                    request, data, self.limits, slow_seconds=_SLOW_SECONDS, on_slow=turn.lend
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
        raise ImageUndecodable(f"The image ends the process that decodes it ({reason}).")

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
        """Starts another at once: the next image should not have to wait for that."""
        self._end(process)
        with self._lock, suppress(RuntimeError):  # if the pool is closed
            if len(self._idle) < self._most_idle:
                self._starter.submit(self._add)

    def _add(self) -> None:
        try:
            self._give_back(self._start())
        except (OSError, DecoderDied) as error:  # the next image tries again, and is told
            log.warning("decoder_not_started", reason=str(error))

    def _give_back(self, process: DecoderProcess) -> None:
        with self._lock:
            keep = len(self._idle) < self._most_idle and not process.worn
            if keep:
                self._idle.append(process)
        if not keep:
            self._end(process)

    def _end(self, process: DecoderProcess) -> None:
        with self._lock:
            self._all.discard(process)
        process.end()


@dataclass
class _Turns:
    """How many decode at once. One that takes long lends its turn to the next, within bounds."""

    most: int
    used: int = 0
    lent: int = 0

    def __post_init__(self) -> None:
        self.changed = threading.Condition()

    def take(self) -> "_Turn":
        with self.changed:
            while self.used >= self.most:
                self.changed.wait()
            self.used += 1
        return _Turn(self)


class _Turn:
    def __init__(self, turns: _Turns) -> None:
        self._turns = turns
        self._lent = False

    def lend(self) -> None:
        turns = self._turns
        with turns.changed:
            if self._lent or turns.lent >= turns.most:
                return
            self._lent = True
            turns.lent += 1
            turns.used -= 1
            turns.changed.notify()

    def end(self) -> None:
        turns = self._turns
        with turns.changed:
            if self._lent:
                turns.lent -= 1
            else:
                turns.used -= 1
                turns.changed.notify()


def decoder_pool(settings: Settings, processes: int | None = None) -> DecoderPool:
    """One for all of this process that decode with the same limits."""
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
