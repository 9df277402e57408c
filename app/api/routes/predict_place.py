"""A place among those who wait for predictions, and the figures of how it went."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from fastapi import Request

from app.core.platform.actor import Actor
from app.core.platform.errors import QueueFull
from app.core.serving.admission import Reservation


@contextmanager
def reserve_capacity(request: Request) -> Iterator[Reservation]:
    """Before anything of the body is read; QueueFull if it would find no place.

    The place itself is taken when the body is complete.
    """
    admission, watch = request.app.state.serving.admission, request.app.state.metrics.serving
    actor: Actor = request.state.actor
    started, outcome, images = time.perf_counter(), "failed", 0
    try:
        with admission.enter(actor.key_id or actor.key_name or "") as place:
            watch.waiting(admission.images)
            yield place
            outcome, images = "answered", place.images
    except QueueFull:
        outcome = "refused"
        raise
    finally:
        watch.answered(outcome, images, time.perf_counter() - started)


async def arriving(request: Request, place: Reservation) -> AsyncIterator[bytes]:
    """The body as it comes, counted against what may be arriving at once."""
    async for chunk in request.stream():
        place.receive(len(chunk))
        yield chunk
