"""Admission control for predict requests: limits on what waits and what arrives bound the memory.

A request takes images and bytes of the queue once its body is complete. Until then only its bytes
count, against a limit of their own: a body that never ends takes no capacity from others.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.platform.errors import QueueFull

_RETRY_SECONDS = 3.0  # a refused client retries within this time, by its Retry-After
_FULL = "Too many predictions are waiting; try again in a moment."


class Budget:
    """A limit for all requests together; a key gets a share of it while another key waits."""

    def __init__(self, limit: int, share: float = 1.0) -> None:
        self.limit = limit
        self.total = 0
        self._share = max(1, int(limit * share))
        self._by_key: Counter[str] = Counter()
        self._refused: tuple[str, float] = ("", 0.0)  # the last key that was refused, and when

    def fits(self, key: str, own: int, amount: int) -> bool:
        """`own` is what the same request has already; a request that is alone always fits."""
        refused = self._other_was_refused(key)
        if own == self.total and not refused:
            return True
        contended = refused or self._by_key[key] < self.total
        limit = self._share if contended else self.limit
        return self.total + amount <= self.limit and self._by_key[key] + amount <= limit

    def add(self, key: str, amount: int) -> None:
        self.total += amount
        self._by_key[key] += amount
        if not self._by_key[key]:
            del self._by_key[key]

    def refuse(self, key: str) -> None:
        self._refused = (key, time.monotonic())

    def _other_was_refused(self, key: str) -> bool:
        other, when = self._refused
        return other not in ("", key) and time.monotonic() - when < _RETRY_SECONDS


class Admission:
    def __init__(
        self,
        max_images: int,
        max_bytes: int,
        max_arriving_bytes: int | None = None,
        key_share: float = 1.0,
    ) -> None:
        self._images = Budget(max_images, key_share)
        self._bytes = Budget(max_bytes, key_share)
        self._arriving = Budget(max_arriving_bytes or max_bytes, key_share)
        self._lock = threading.Lock()

    @property
    def max_images(self) -> int:
        return self._images.limit

    @property
    def images(self) -> int:
        return self._images.total

    @property
    def bytes(self) -> int:
        return self._bytes.total

    @property
    def arriving_bytes(self) -> int:
        return self._arriving.total

    @contextmanager
    def reserve(self, key: str = "") -> Iterator["Reservation"]:
        """Opens an empty reservation for a request of this key, and releases it at the end.

        Raises QueueFull if not even one image would fit.
        """
        reservation = Reservation(self, key)
        with self._lock:
            reservation._check(self._images, 0, 1)
        try:
            yield reservation
        finally:
            reservation.release()


class Reservation:
    """The capacity that one request uses."""

    def __init__(self, admission: Admission, key: str) -> None:
        self._admission = admission
        self._key = key
        self.images = 0
        self.bytes = 0
        self.arriving_bytes = 0

    def add_arriving(self, bytes_: int) -> None:
        """Adds a part of a body that is not complete; raises QueueFull if it does not fit."""
        admission = self._admission
        with admission._lock:
            self._check(admission._arriving, self.arriving_bytes, bytes_)
            admission._arriving.add(self._key, bytes_)
            self.arriving_bytes += bytes_

    def enqueue_body(self, *, images: int) -> None:
        """Moves the complete body from the arriving bytes to the queue; QueueFull if it is full."""
        arrived = self.arriving_bytes
        self.add(images=images, bytes_=arrived)
        with self._admission._lock:
            self._admission._arriving.add(self._key, -arrived)
            self.arriving_bytes -= arrived

    def add(self, *, images: int = 0, bytes_: int = 0) -> None:
        """Adds to what the request has in the queue; raises QueueFull if it does not fit."""
        admission = self._admission
        with admission._lock:
            # Alone in both, or in neither: the bytes of one image may fill the queue.
            alone = (admission.images, admission.bytes) == (self.images, self.bytes)
            own = (self.images, self.bytes) if alone else (-1, -1)
            self._check(admission._images, own[0], images)
            self._check(admission._bytes, own[1], bytes_)
            admission._images.add(self._key, images)
            admission._bytes.add(self._key, bytes_)
            self.images += images
            self.bytes += bytes_

    def release(self) -> None:
        admission = self._admission
        with admission._lock:
            admission._images.add(self._key, -self.images)
            admission._bytes.add(self._key, -self.bytes)
            admission._arriving.add(self._key, -self.arriving_bytes)

    def _check(self, budget: Budget, own: int, amount: int) -> None:
        if not budget.fits(self._key, own, amount):
            budget.refuse(self._key)
            raise QueueFull(_FULL)
