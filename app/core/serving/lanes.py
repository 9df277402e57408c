"""Threads that take what waits, a batch at a time.

Nobody waits for a batch to fill up: a free lane takes at once whatever is there. One request
alone gets all cores; when many come, each lane computes a batch of its own on one core, which
is the fastest way to get through a crowd.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.core.errors import DeadlineExceeded, ImageRejected, PredictorUnavailable, ServiceError
from app.core.serving.messages import Answer, Ask, Batch, Outcome, Refusal

if TYPE_CHECKING:
    from PIL.Image import Image

    from app.core.serving.models import ServedModel

Decode = Callable[[bytes, int], "Image"]
_FEATURES = "features"  # the key of work that needs no backbone


@dataclass(eq=False)
class Request:
    """An ask on its way through the lanes, in pieces."""

    ask: Ask
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


@dataclass(frozen=True, eq=False)
class _Piece:
    request: Request
    index: int


class Lanes:
    def __init__(self, threads: int, decode: Decode, reply: Callable[..., None]) -> None:
        self._threads = threads
        self._decode = decode
        self._reply = reply
        self._waiting: dict[object, deque[_Piece]] = {}
        self._busy = 0
        self._changed = threading.Condition()
        self._closed = False
        self._lanes = [
            threading.Thread(target=self._run, name=f"lane-{i}", daemon=True)
            for i in range(threads)
        ]
        for lane in self._lanes:
            lane.start()

    def put(self, request: Request, *, may_work: bool = False) -> None:
        """Whoever `may_work` does so at once if nobody else works: to wake up another thread
        would take longer than to pass on a small picture."""
        pieces = [_Piece(request, index) for index in range(request.pieces)]
        with self._changed:
            alone = may_work and self._busy == 0 and not self._waiting and len(pieces) == 1
            if alone:
                self._busy += 1
            else:
                self._waiting.setdefault(request.key, deque()).extend(pieces)
                self._changed.notify(len(pieces))
        if alone:
            self._work_as_lane(pieces, self._threads)

    def close(self) -> None:
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
        with self._changed:
            ready[0].request.batches.append(batch)  # told once, however many share it
            for piece, outcome in zip(ready, outcomes, strict=True):
                piece.request.outcomes[piece.index] = outcome
            done = [r for r in dict.fromkeys(p.request for p in ready) if _is_done(r)]
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
        preprocessing = first.model.home.backbone.preprocessing
        size = preprocessing.size
        pixels = torch.empty((len(pieces), size, size, 3), dtype=torch.uint8)
        found: list[Outcome | None] = [None] * len(pieces)
        places: list[int] = []
        for place, piece in enumerate(pieces):
            try:
                data = piece.request.ask.images[piece.index]
                image = self._decode(data, preprocessing.decode_side)
                preprocessing.fill(pixels[len(places)], image)
                places.append(place)
            except ImageRejected as error:
                found[place] = error
        if places:
            features = first.model.home.backbone.embed(pixels[: len(places)], threads).numpy()
            for model in dict.fromkeys(pieces[place].request.model for place in places):
                rows = [i for i, at in enumerate(places) if pieces[at].request.model is model]
                for row, probabilities in zip(
                    rows, model.head.predict_proba(features[rows]), strict=True
                ):
                    found[places[row]] = probabilities
        return [outcome for outcome in found if outcome is not None]

    def _is_late(self, request: Request, now: float) -> bool:
        if now > request.ask.deadline:
            error = DeadlineExceeded("Its turn did not come in time; try again in a moment.")
            self._end(request, Refusal(id=request.ask.id, error=error))
        return request.over

    def _end(self, request: Request, message: Answer | Refusal) -> None:
        with self._changed:
            if request.over:
                return
            request.over = True
        self._reply(message)


def _is_done(request: Request) -> bool:
    return not request.over and len(request.outcomes) == request.pieces


def _as_answer(request: Request) -> Answer:
    outcomes = [request.outcomes[index] for index in range(request.pieces)]
    if request.ask.features is not None:
        assert isinstance(outcomes[0], np.ndarray)
        outcomes = list(outcomes[0])
    return Answer(id=request.ask.id, outcomes=outcomes, batches=request.batches)


def _as_refusal(request: Request, error: Exception) -> Refusal:
    if not isinstance(error, ServiceError):
        detail = f"The prediction failed: {type(error).__name__}: {error}"
        error = PredictorUnavailable(detail[:300])
    return Refusal(id=request.ask.id, error=error)
