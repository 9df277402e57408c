"""Who may come in: a bound on the images and bytes that wait, so that memory stays flat."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.core.errors import QueueFull


@dataclass
class Admission:
    max_images: int
    max_bytes: int
    images: int = 0
    bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @contextmanager
    def enter(self) -> Iterator["Place"]:
        """A place for one image, before anything of the request is read; it may grow."""
        place = Place(self)
        place.take(images=1)
        try:
            yield place
        finally:
            place.leave()


@dataclass
class Place:
    """What one request takes up."""

    _admission: Admission
    images: int = 0
    bytes: int = 0

    def take(self, *, images: int = 0, bytes_: int = 0) -> None:
        """More of it, or QueueFull; a request that is alone always fits."""
        admission = self._admission
        with admission._lock:
            alone = (admission.images, admission.bytes) == (self.images, self.bytes)
            too_many = admission.images + images > admission.max_images
            too_large = admission.bytes + bytes_ > admission.max_bytes
            if not alone and (too_many or too_large):
                raise QueueFull("Too many predictions are waiting; try again in a moment.")
            admission.images += images
            admission.bytes += bytes_
            self.images += images
            self.bytes += bytes_

    def leave(self) -> None:
        with self._admission._lock:
            self._admission.images -= self.images
            self._admission.bytes -= self.bytes
