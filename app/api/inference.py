"""One predict request in either protocol: admission, model, body, inputs, outcomes.

`:predict` and the Open Inference Protocol are adapters over this module. They differ in how a
request names its inputs and how outcomes are written, and in nothing else.
"""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from fastapi import Request

from app.core.platform.actor import Actor
from app.core.platform.errors import ImageRejected, InvalidRequest, QueueFull
from app.core.runtime import Runtime
from app.core.serving.admission import Reservation
from app.core.serving.client import Serving
from app.core.serving.messages import Embedded, Outcome
from app.core.serving.resolver import ResolvedModel

OTHER_JSON_VALUES = 10_000  # that a JSON body may have beside its numbers
Features = npt.NDArray[np.float32]
_Found = TypeVar("_Found")


@dataclass(frozen=True, kw_only=True)
class PredictInputs:
    """Images or features, never both. An image that cannot be read is its own outcome."""

    images: Sequence[bytes | ImageRejected] = ()
    features: Features | None = None

    def __len__(self) -> int:
        return len(self.images) if self.features is None else len(self.features)


@dataclass(frozen=True, kw_only=True)
class PredictContext:
    """What a predict request needs, looked up once."""

    request: Request
    runtime: Runtime
    serving: Serving
    actor: Actor
    reservation: Reservation
    model: ResolvedModel

    async def stream_body(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives, counted against the bytes that may arrive at once."""
        async for chunk in self.request.stream():
            self.reservation.add_arriving(len(chunk))
            yield chunk

    async def read_body(self) -> bytes:
        """Reads the whole body and reserves the queue for its first image."""
        body = bytearray()
        async for chunk in self.stream_body():
            body += chunk
        self.reservation.enqueue_body(images=1)
        return bytes(body)

    async def predict(self, inputs: PredictInputs, seconds: float | None) -> list[Outcome]:
        """Returns the outcomes in the order of the inputs."""
        if inputs.features is not None:
            outcomes = await self.serving.predict(
                self.model.files, features=inputs.features, seconds=seconds
            )
        else:
            outcomes = await self._send_images(inputs.images, seconds)
        self.request.app.state.counter.add(self.model, outcomes)
        self.request.app.state.metrics.serving.predicted(outcomes)
        return outcomes

    async def embed(self, inputs: PredictInputs, seconds: float | None) -> list[Embedded]:
        """Returns the features (D,) of each input, or why it has none."""
        if inputs.features is not None:
            return list(inputs.features)
        readable = _readable(inputs.images)
        found: Sequence[Embedded] = ()
        if readable:
            found = await self.serving.embed(self.model.files, readable, seconds=seconds)
        return _in_order(inputs.images, found)

    async def _send_images(
        self, images: Sequence[bytes | ImageRejected], seconds: float | None
    ) -> list[Outcome]:
        readable = _readable(images)
        found: Sequence[Outcome] = ()
        if readable:
            found = await self.serving.predict(self.model.files, readable, seconds=seconds)
        return _in_order(images, found)


def _readable(images: Sequence[bytes | ImageRejected]) -> list[bytes]:
    return [image for image in images if isinstance(image, bytes)]


def _in_order(
    images: Sequence[bytes | ImageRejected], found: Sequence[_Found]
) -> list[_Found | ImageRejected]:
    """What was found for the readable images, with the errors of the others between them."""
    each = iter(found)
    return [next(each) if isinstance(image, bytes) else image for image in images]


@asynccontextmanager
async def open_context(request: Request, reference: str) -> AsyncIterator[PredictContext]:
    """Admits the request before its body is read, and resolves the model."""
    state, actor = request.app.state, request.state.actor
    with _admit(request, actor) as reservation:
        yield PredictContext(
            request=request,
            runtime=state.runtime,
            serving=state.serving,
            actor=actor,
            reservation=reservation,
            model=await state.resolver.resolve(actor.tenant, reference),
        )


@contextmanager
def _admit(request: Request, actor: Actor) -> Iterator[Reservation]:
    """Raises QueueFull if no image fits the queue; counts the request in the metrics.

    The queue itself is reserved when the body is complete.
    """
    admission, metrics = request.app.state.serving.admission, request.app.state.metrics.serving
    started, outcome, images = time.perf_counter(), "failed", 0
    try:
        with admission.reserve(actor.key_id or actor.key_name or "") as reservation:
            metrics.waiting(admission.images)
            yield reservation
            outcome, images = "answered", reservation.images
    except QueueFull:
        outcome = "refused"
        raise
    finally:
        metrics.answered(outcome, images, time.perf_counter() - started)


def check_novelty(model: ResolvedModel, false_alarm_rate: float | None) -> None:
    """`none of these` needs a version that knows its training images."""
    if false_alarm_rate is not None and not model.files.has_novelty:
        raise InvalidRequest.field(
            "false_alarm_rate",
            f"{model.name} {model.version} has no novelty score; train a new version",
        )


def check_count(field: str, count: int, limit: int) -> None:
    if not 1 <= count <= limit:
        raise InvalidRequest.field(field, f"takes 1 to {limit:,} in one request, not {count:,}")


def check_rows(field: str, rows: Sequence[Any], dim: int) -> None:
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != dim:
            raise InvalidRequest.field(f"{field}.{number}", f"must be a list of {dim} numbers")


def to_features(field: str, numbers: Any, count: int, dim: int) -> Features:
    """Converts numbers to (count, dim) in float32; InvalidRequest if one of them does not fit."""
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is checked below
            features = np.asarray(numbers, dtype=np.float32).reshape(count, dim)
    except OverflowError:
        raise InvalidRequest.field(field, "has a number that is too large") from None
    if not np.isfinite(features).all():
        raise InvalidRequest.field(field, "has a number that is not a finite 32-bit float")
    return features
