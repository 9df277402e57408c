"""Limits of a key: requests per minute, and long responses that are open at once."""

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import structlog
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from app.core.platform.actor import Actor
from app.core.platform.errors import RateLimited

_REDIS_SECONDS = 0.25  # the longest that a request waits for the shared counts
_LOCAL_SECONDS = 10.0  # without another attempt after Redis has failed
_CLOSED_SECONDS = 5  # after which another long response may have ended
log = structlog.get_logger()


class RateLimits:
    """Counts requests in a sliding minute, in the broker's Redis if there is one.

    Without Redis, or while it cannot be reached, each process counts for itself: a request never
    fails because of the counter.
    """

    def __init__(self, broker_url: str) -> None:
        self.is_shared = broker_url.startswith(("redis://", "rediss://"))
        self._broker_url = broker_url
        self._local_until = 0.0

    def hit(self, actor: Actor) -> None:
        """Counts a request of this key; raises RateLimited. Blocks on Redis if `is_shared`."""
        if actor.requests_per_minute is None:
            return
        wait = self._retry_after(actor, actor.requests_per_minute)
        if wait is not None:
            raise RateLimited(
                f"This key may send {actor.requests_per_minute} requests per minute; retry in "
                f"{wait} s.",
                retry_after=wait,
            )

    def _retry_after(self, actor: Actor, limit: int) -> int | None:
        if not self.is_shared or time.monotonic() < self._local_until:
            return _hit(self._local, actor, limit)
        try:
            return _hit(self._shared, actor, limit)
        except StorageError as error:
            if self._local_until == 0.0:
                log.warning("rate_limit_redis_failed", reason=str(error.storage_error))
            self._local_until = time.monotonic() + _LOCAL_SECONDS
            return _hit(self._local, actor, limit)

    @cached_property
    def _local(self) -> MovingWindowRateLimiter:
        return MovingWindowRateLimiter(MemoryStorage())

    @cached_property
    def _shared(self) -> MovingWindowRateLimiter:
        storage = RedisStorage(
            self._broker_url,
            key_prefix="temi-limits",
            wrap_exceptions=True,
            socket_timeout=_REDIS_SECONDS,
            socket_connect_timeout=_REDIS_SECONDS,
        )
        return MovingWindowRateLimiter(storage)


def _hit(limiter: MovingWindowRateLimiter, actor: Actor, limit: int) -> int | None:
    """Counts a request; returns None, or the seconds until the next one is allowed."""
    item, key = RateLimitItemPerMinute(limit), str(actor.key_id)
    if limiter.hit(item, key):
        return None
    free_at = limiter.get_window_stats(item, key).reset_time
    return max(1, math.ceil(free_at - time.time()))


class OpenResponseLimit:
    """Limits the long responses that a key has open at once in this process."""

    def __init__(self, what: str, limit: int) -> None:
        self._what = what
        self._limit = limit
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def acquire(self, owner: str) -> Iterator[None]:
        """Counts a response while it is open; raises RateLimited if the owner has too many."""
        with self._lock:
            if self._open[owner] >= self._limit:
                raise RateLimited(
                    f"This key has {self._limit} {self._what} open, which is the limit. Close "
                    "one, or wait until one has ended.",
                    retry_after=_CLOSED_SECONDS,
                )
            self._open[owner] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[owner] -= 1
                if not self._open[owner]:
                    del self._open[owner]
