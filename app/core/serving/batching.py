"""Threads that take what waits, a batch at a time.

Images are decoded before they wait for a batch, by other processes: one that takes long, or cannot
be decoded, delays neither the batch that it would have been in nor those behind it.

Nobody waits for a batch to fill up: a free lane takes at once whatever is there. One request
alone gets all cores; when many come, each lane computes a batch of its own on one core, which
is the fastest way to get through a crowd.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.core.platform.errors import (
    DeadlineExceeded,
    ImageRejected,
    PredictorUnavailable,
    ServiceError,
)
from app.core.serving.messages import Batch, Outcome, PredictFailure, PredictRequest, PredictResult

if TYPE_CHECKING:
    from torch import Tensor

    from app.core.serving.models import ServedModel
    from temi.backbones.preprocessing import Preprocessing

Decode = Callable[[bytes, "Preprocessing"], "Tensor"]
"""An image's bytes to pixels (S, S, 3) in uint8; ImageRejected if they cannot be decoded."""
_FEATURES = "features"  # the key of work that needs no backbone


@dataclass(eq=False)
class Request:
    """An ask on its way through the lanes, in pieces."""

    ask: PredictRequest
    model: "ServedModel"
    arrived: float = field(default_factory=time.monotonic)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    over: bool = False

    @property
    def pieces(self) -> int:
        return len(self.ask.images) if self.ask.features is None else 1

    @property
    def key(self) -> object:
        """Requests of one key may share a batch."""
        return self.model.home if self.ask.features is None else _FEATURES


@dataclass(eq=False)
class _Piece:
    request: Request
    index: int
    pixels: "Tensor | None" = None  # once the image is decoded


class BatchScheduler:
    def __init__(self, threads: int, decode: Decode, reply: Callable[..., None]) -> None:
        self._threads = threads
        self._decode = decode
        self._reply = reply
        self._waiting: dict[object, deque[_Piece]] = {}
        self._busy = 0
        self._undecoded = 0  # pieces that are decoded or wait for it
        # Twice as many as decode at once: an image that takes long gives its turn to another.
        self._decoders = ThreadPoolExecutor(2 * threads, "decode")
        self._changed = threading.Condition()
        self._closed = False
        self._lanes = [
            threading.Thread(target=self._run, name=f"lane-{i}", daemon=True)
            for i in range(threads)
        ]
        for lane in self._lanes:
            lane.start()

    def put(self, request: Request, *, may_work: bool = False) -> None:
        """The caller that `may_work` does so at once if there is nothing else to do: to wake up
        another thread would take longer than to pass on a small picture."""
        pieces = [_Piece(request, index) for index in range(request.pieces)]
        with self._changed:
            alone = may_work and len(pieces) == 1 and self._is_free and self._undecoded == 0
            if request.ask.features is None:
                self._undecoded += len(pieces)
        if request.ask.features is not None:
            self._enqueue(pieces[0], may_work=alone)
        elif alone:
            self._prepare(pieces[0], may_work=True)
        else:
            for piece in pieces:
                self._decoders.submit(self._prepare, piece)

    @property
    def waiting(self) -> int:
        """Pieces that are decoded and wait for a batch."""
        with self._changed:
            return sum(map(len, self._waiting.values()))

    @property
    def _is_free(self) -> bool:
        return self._busy == 0 and not self._waiting

    def _prepare(self, piece: _Piece, *, may_work: bool = False) -> None:
        """Decodes the piece, which then waits for a batch."""
        try:
            ready = not self._is_late(piece.request, time.monotonic()) and self._decoded(piece)
        finally:
            with self._changed:
                self._undecoded -= 1
        if ready:
            self._enqueue(piece, may_work=may_work)

    def _decoded(self, piece: _Piece) -> bool:
        """False if that gave the piece its outcome, or ended the request."""
        request = piece.request
        try:
            data = request.ask.images[piece.index]
            piece.pixels = self._decode(data, request.model.home.backbone.preprocessing)
        except ImageRejected as error:
            self._record([piece], [error])
        except Exception as error:  # noqa: BLE001 - the thread must go on, and a caller waits
            self._end(request, _as_refusal(request, error))
        return piece.pixels is not None

    def _enqueue(self, piece: _Piece, *, may_work: bool) -> None:
        with self._changed:
            now = may_work and self._is_free
            if now:
                self._busy += 1
            else:
                self._waiting.setdefault(piece.request.key, deque()).append(piece)
                self._changed.notify()
        if now:
            self._work_as_lane([piece], self._threads)

    def close(self) -> None:
        self._decoders.shutdown(cancel_futures=True)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for lane in self._lanes:
            lane.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (not self._waiting or self._busy >= self._threads):
                    self._changed.wait()
                if self._closed:
                    return
                pieces = self._take()
                self._busy += 1
                alone = self._busy == 1 and not self._waiting
            self._work_as_lane(pieces, self._threads if alone else 1)

    def _work_as_lane(self, pieces: list[_Piece], threads: int) -> None:
        try:
            self._work(pieces, threads)
        finally:
            with self._changed:
                self._busy -= 1
                if self._waiting:
                    self._changed.notify()

    def _take(self) -> list[_Piece]:
        """From the queue whose first has waited longest; other free lanes get their share."""
        key = min(self._waiting, key=lambda key: self._waiting[key][0].request.arrived)
        queue = self._waiting[key]
        free = max(1, self._threads - self._busy)
        most = queue[0].request.model.home.batch if key != _FEATURES else 1
        count = min(most, math.ceil(len(queue) / free))
        pieces = [queue.popleft() for _ in range(count)]
        if not queue:
            del self._waiting[key]
        return pieces

    def _work(self, pieces: list[_Piece], threads: int) -> None:
        started = time.monotonic()
        ready = [piece for piece in pieces if not self._is_late(piece.request, started)]
        if not ready:
            return
        try:
            outcomes = self._outcomes(ready, threads)
        except Exception as error:  # noqa: BLE001 - the lane must go on, and somebody waits
            for piece in ready:
                self._end(piece.request, _as_refusal(piece.request, error))
            return
        seconds = time.monotonic() - started
        wait = started - ready[0].request.arrived
        batch = Batch(size=len(ready), wait_seconds=wait, compute_seconds=seconds)
        ready[0].request.batches.append(batch)  # told once, however many share it
        self._record(ready, outcomes)

    def _record(self, pieces: list[_Piece], outcomes: Sequence[Outcome]) -> None:
        with self._changed:
            for piece, outcome in zip(pieces, outcomes, strict=True):
                piece.request.outcomes[piece.index] = outcome
            done = [r for r in dict.fromkeys(p.request for p in pieces) if _is_done(r)]
            for request in done:
                request.over = True
        if done:
            self._reply(*map(_as_answer, done))  # those of one batch travel together

    def _outcomes(self, pieces: list[_Piece], threads: int) -> list[Outcome]:
        import torch

        if torch.get_num_threads() != 1:  # several lanes compute at once
            torch.set_num_threads(1)
        first = pieces[0].request
        if first.ask.features is not None:
            return [first.model.head.predict_proba(first.ask.features)]
        pixels = torch.stack([piece.pixels for piece in pieces if piece.pixels is not None])
        features = first.model.home.backbone.embed(pixels, threads).numpy()
        found: dict[_Piece, Outcome] = {}
        for model in dict.fromkeys(piece.request.model for piece in pieces):
            rows = [row for row, piece in enumerate(pieces) if piece.request.model is model]
            for row, probabilities in zip(
                rows, model.head.predict_proba(features[rows]), strict=True
            ):
                found[pieces[row]] = probabilities
        return [found[piece] for piece in pieces]

    def _is_late(self, request: Request, now: float) -> bool:
        if now > request.ask.deadline:
            error = DeadlineExceeded("Its turn did not come in time; try again in a moment.")
            self._end(request, PredictFailure(id=request.ask.id, error=error))
        return request.over

    def _end(self, request: Request, message: PredictResult | PredictFailure) -> None:
        with self._changed:
            if request.over:
                return
            request.over = True
        self._reply(message)


def _is_done(request: Request) -> bool:
    return not request.over and len(request.outcomes) == request.pieces


def _as_answer(request: Request) -> PredictResult:
    outcomes = [request.outcomes[index] for index in range(request.pieces)]
    if request.ask.features is not None:
        assert isinstance(outcomes[0], np.ndarray)
        outcomes = list(outcomes[0])
    return PredictResult(id=request.ask.id, outcomes=outcomes, batches=request.batches)


def _as_refusal(request: Request, error: Exception) -> PredictFailure:
    if not isinstance(error, ServiceError):
        detail = f"The prediction failed: {type(error).__name__}: {error}"
        error = PredictorUnavailable(detail[:300])
    return PredictFailure(id=request.ask.id, error=error)
