"""Dynamic batching: worker threads take what waits, one batch at a time.

Images are decoded by other processes before they wait for a batch: an image that takes long, or
cannot be decoded, delays neither its batch nor those behind it.

A batch does not wait to fill up: a free thread takes at once what is there. A single request gets
all cores; under load each thread computes a batch of its own on one core, which gives the highest
throughput.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from app.core.platform.errors import (
    DeadlineExceeded,
    ImageRejected,
    PredictorUnavailable,
    ServiceError,
)
from app.core.serving.messages import (
    BatchStats,
    PredictFailure,
    PredictRequest,
    PredictResult,
)

if TYPE_CHECKING:
    from app.core.serving.models import ServedModel
    from temi.backbones.preprocessing import Pixels, Preprocessing

Decode = Callable[[bytes, "Preprocessing"], "Pixels"]
"""An image's bytes to pixels (S, S, 3); ImageRejected if they cannot be decoded."""
_FEATURES = "features"  # the queue of requests that need no backbone


@dataclass(eq=False)
class ScheduledRequest:
    """A request in the scheduler. Each image is an item of its own; all features are one item."""

    message: PredictRequest
    model: "ServedModel"
    received_at: float = field(default_factory=time.monotonic)
    outcomes: dict[int, Any] = field(default_factory=dict)
    batches: list[BatchStats] = field(default_factory=list)
    is_finished: bool = False

    @property
    def item_count(self) -> int:
        return len(self.message.images) if self.message.features is None else 1

    @property
    def queue_key(self) -> object:
        """Requests with the same key may share a batch."""
        return self.model.shared if self.message.features is None else _FEATURES


@dataclass(eq=False)
class _Item:
    request: ScheduledRequest
    index: int
    pixels: "Pixels | None" = None  # once the image is decoded


class BatchScheduler:
    def __init__(self, threads: int, decode: Decode, reply: Callable[..., None]) -> None:
        self._threads = threads
        self._decode = decode
        self._reply = reply
        self._queues: dict[object, deque[_Item]] = {}
        self._busy = 0
        self._undecoded = 0  # items that are being decoded or wait for it
        # Twice as many as decode at once: a slow image does not hold up the others.
        self._decoders = ThreadPoolExecutor(2 * threads, "decode")
        self._changed = threading.Condition()
        self._closed = False
        self._workers = [
            threading.Thread(target=self._run_worker, name=f"batch-{i}", daemon=True)
            for i in range(threads)
        ]
        for worker in self._workers:
            worker.start()

    def submit(self, request: ScheduledRequest, *, run_inline: bool = False) -> None:
        """With `run_inline` the calling thread computes a single item if nothing else waits: to
        wake another thread would take longer than to compute a small image."""
        items = [_Item(request, index) for index in range(request.item_count)]
        with self._changed:
            alone = run_inline and len(items) == 1 and self._is_free and self._undecoded == 0
            if request.message.features is None:
                self._undecoded += len(items)
        if request.message.features is not None:
            self._enqueue(items[0], run_inline=alone)
        elif alone:
            self._decode_and_enqueue(items[0], run_inline=True)
        else:
            for item in items:
                self._decoders.submit(self._decode_and_enqueue, item)

    @property
    def waiting(self) -> int:
        """Items that are decoded and wait for a batch."""
        with self._changed:
            return sum(map(len, self._queues.values()))

    @property
    def _is_free(self) -> bool:
        return self._busy == 0 and not self._queues

    def _decode_and_enqueue(self, item: _Item, *, run_inline: bool = False) -> None:
        try:
            ready = not self._fail_if_late(item.request, time.monotonic()) and self._decoded(item)
        finally:
            with self._changed:
                self._undecoded -= 1
        if ready:
            self._enqueue(item, run_inline=run_inline)

    def _decoded(self, item: _Item) -> bool:
        """Decodes the item; False if the image was rejected or the request failed."""
        request = item.request
        try:
            data = request.message.images[item.index]
            item.pixels = self._decode(data, request.model.shared.backbone.preprocessing)
        except ImageRejected as error:
            self._record([item], [error])
        except Exception as error:  # noqa: BLE001 - the thread must go on, and a client waits
            self._finish(request, _to_failure(request, error))
        return item.pixels is not None

    def _enqueue(self, item: _Item, *, run_inline: bool) -> None:
        with self._changed:
            run_now = run_inline and self._is_free
            if run_now:
                self._busy += 1
            else:
                self._queues.setdefault(item.request.queue_key, deque()).append(item)
                self._changed.notify()
        if run_now:
            self._run_batch([item], self._threads)

    def close(self) -> None:
        self._decoders.shutdown(cancel_futures=True)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    def _run_worker(self) -> None:
        while self._wait_for_items():
            self._run_next_batch()

    def _wait_for_items(self) -> bool:
        """False if the scheduler was closed. While the thread waits here it holds no items, whose
        model could not be unloaded."""
        with self._changed:
            while not self._closed and not self._can_start:
                self._changed.wait()
            return not self._closed

    @property
    def _can_start(self) -> bool:
        return bool(self._queues) and self._busy < self._threads

    def _run_next_batch(self) -> None:
        with self._changed:
            if not self._can_start:
                return  # another thread was faster
            items = self._take_batch()
            self._busy += 1
            alone = self._busy == 1 and not self._queues
        self._run_batch(items, self._threads if alone else 1)

    def _run_batch(self, items: list[_Item], threads: int) -> None:
        """The caller has counted itself as busy."""
        try:
            self._compute(items, threads)
        finally:
            with self._changed:
                self._busy -= 1
                if self._queues:
                    self._changed.notify()

    def _take_batch(self) -> list[_Item]:
        """Takes from the queue whose first item has waited longest, and leaves other free threads
        their share of it."""
        key = min(self._queues, key=lambda key: self._queues[key][0].request.received_at)
        queue = self._queues[key]
        free = max(1, self._threads - self._busy)
        limit = queue[0].request.model.shared.batch_size if key != _FEATURES else 1
        count = min(limit, math.ceil(len(queue) / free))
        items = [queue.popleft() for _ in range(count)]
        if not queue:
            del self._queues[key]
        return items

    def _compute(self, items: list[_Item], threads: int) -> None:
        started = time.monotonic()
        ready = [item for item in items if not self._fail_if_late(item.request, started)]
        if not ready:
            return
        try:
            outcomes = self._outcomes(ready, threads)
        except Exception as error:  # noqa: BLE001 - the thread must go on, and clients wait
            for item in ready:
                self._finish(item.request, _to_failure(item.request, error))
            return
        seconds = time.monotonic() - started
        wait = started - ready[0].request.received_at
        stats = BatchStats(size=len(ready), wait_seconds=wait, compute_seconds=seconds)
        ready[0].request.batches.append(stats)  # reported once, however many requests share it
        self._record(ready, outcomes)

    def _record(self, items: list[_Item], outcomes: Sequence[Any]) -> None:
        with self._changed:
            for item, outcome in zip(items, outcomes, strict=True):
                item.request.outcomes[item.index] = outcome
            complete = [r for r in dict.fromkeys(i.request for i in items) if _is_complete(r)]
            for request in complete:
                request.is_finished = True
        if complete:
            self._reply(*map(_to_result, complete))  # one message for all requests of the batch

    def _outcomes(self, items: list[_Item], threads: int) -> list[Any]:
        """Of each item, as the request asks for; of features, a list for all rows."""
        first = items[0].request
        if first.message.features is not None:
            return [first.model.predict(first.message.features)]
        pixels = np.stack([item.pixels for item in items if item.pixels is not None])
        features = first.model.shared.backbone.embed(pixels, threads)
        found: dict[_Item, Any] = {
            item: features[row] for row, item in enumerate(items) if item.request.message.embed_only
        }
        labeled = [item for item in items if item not in found]
        for model in dict.fromkeys(item.request.model for item in labeled):
            rows = [
                row
                for row, item in enumerate(items)
                if item.request.model is model and item not in found
            ]
            for row, predicted in zip(rows, model.predict(features[rows]), strict=True):
                found[items[row]] = predicted
        return [found[item] for item in items]

    def _fail_if_late(self, request: ScheduledRequest, now: float) -> bool:
        """Fails a request after its deadline; True if the request is finished."""
        if now > request.message.deadline:
            error = DeadlineExceeded("The prediction took too long; try again.")
            self._finish(request, PredictFailure(id=request.message.id, error=error))
        return request.is_finished

    def _finish(self, request: ScheduledRequest, message: PredictFailure) -> None:
        with self._changed:
            if request.is_finished:
                return
            request.is_finished = True
        self._reply(message)


def _is_complete(request: ScheduledRequest) -> bool:
    return not request.is_finished and len(request.outcomes) == request.item_count


def _to_result(request: ScheduledRequest) -> PredictResult:
    outcomes = [request.outcomes[index] for index in range(request.item_count)]
    if request.message.features is not None:
        (outcomes,) = outcomes
    return PredictResult(id=request.message.id, outcomes=outcomes, batches=request.batches)


def _to_failure(request: ScheduledRequest, error: Exception) -> PredictFailure:
    if not isinstance(error, ServiceError):
        detail = f"The prediction failed: {type(error).__name__}: {error}"
        error = PredictorUnavailable(detail[:300])
    return PredictFailure(id=request.message.id, error=error)
