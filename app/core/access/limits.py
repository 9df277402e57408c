"""How often a key may ask: so many requests in any minute that ends now."""

import math
import time
from functools import cached_property

import structlog
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from app.core.platform.actor import Actor
from app.core.platform.errors import RateLimited

_REDIS_SECONDS = 0.25  # a request waits no longer than this for the shared counts
_LOCAL_SECONDS = 10.0  # for which Redis is left alone once it has failed
log = structlog.get_logger()


class RateLimits:
    """Counted in this process, or in the broker's Redis for all processes together.

    If Redis is away each process counts for itself: a limit is never a reason to fail.
    """

    def __init__(self, broker_url: str) -> None:
        self.is_shared = broker_url.startswith(("redis://", "rediss://"))
        self._broker_url = broker_url
        self._local_until = 0.0

    def hit(self, actor: Actor) -> None:
        """Count a request of this key, or refuse it. Waits for Redis if the counts are shared."""
        if actor.requests_per_minute is None:
            return
        wait = self._seconds_to_wait(actor, actor.requests_per_minute)
        if wait is not None:
            raise RateLimited(
                f"This key may send {actor.requests_per_minute} requests a minute.",
                retry_after=wait,
            )

    def _seconds_to_wait(self, actor: Actor, limit: int) -> int | None:
        if not self.is_shared or time.monotonic() < self._local_until:
            return _try(self._local, actor, limit)
        try:
            return _try(self._shared, actor, limit)
        except StorageError as error:
            if self._local_until == 0.0:
                log.warning("rate_limits_not_shared", reason=str(error.storage_error))
            self._local_until = time.monotonic() + _LOCAL_SECONDS
            return _try(self._local, actor, limit)

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


def _try(limiter: MovingWindowRateLimiter, actor: Actor, limit: int) -> int | None:
    """None, or the seconds until the oldest request of the minute no longer counts."""
    item, key = RateLimitItemPerMinute(limit), str(actor.key_id)
    if limiter.hit(item, key):
        return None
    free_at = limiter.get_window_stats(item, key).reset_time
    return max(1, math.ceil(free_at - time.time()))
