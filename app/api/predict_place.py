"""A place among those who wait for predictions, and the figures of how it went."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import Request

from app.core.errors import QueueFull
from app.core.serving.admission import Place


@contextmanager
def place_in_line(request: Request) -> Iterator[Place]:
    """Before anything of the body is read; QueueFull if there is none."""
    admission, watch = request.app.state.serving.admission, request.app.state.metrics.serving
    started, outcome, images = time.perf_counter(), "failed", 0
    try:
        with admission.enter() as place:
            watch.waiting(admission.images)
            yield place
            outcome, images = "answered", place.images
    except QueueFull:
        outcome = "refused"
        raise
    finally:
        watch.answered(outcome, images, time.perf_counter() - started)
