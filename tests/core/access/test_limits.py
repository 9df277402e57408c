"""Requests per minute, counted in Redis if there is one."""

import time

import pytest
from structlog.testing import capture_logs

from app.core.access.limits import RateLimits
from app.core.platform.actor import Actor
from app.core.platform.errors import RateLimited
from tests.servers import free_port


def actor(limit: int | None, key_id: str = "key_1") -> Actor:
    return Actor(tenant="a", scopes=frozenset({"read"}), key_id=key_id, requests_per_minute=limit)


def hits(limits: RateLimits, who: Actor, tries: int = 10) -> int:
    """The number of requests that are allowed."""
    passed = 0
    for _ in range(tries):
        try:
            limits.hit(who)
        except RateLimited:
            continue
        passed += 1
    return passed


def test_a_key_without_a_limit_is_not_limited() -> None:
    assert hits(RateLimits("filesystem://"), actor(None), 1000) == 1000


def test_each_key_has_its_own_count() -> None:
    limits = RateLimits("filesystem://")
    assert hits(limits, actor(4)) == 4
    assert hits(limits, actor(6, "key_2")) == 6


def test_retry_after_is_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, who, start = RateLimits("filesystem://"), actor(2), time.time()
    now = start
    monkeypatch.setattr(time, "time", lambda: now)
    limits.hit(who)
    now = start + 20
    limits.hit(who)
    now = start + 25
    with pytest.raises(RateLimited) as error:
        limits.hit(who)
    assert error.value.retry_after == 35  # the first of the two no longer counts then
    now = start + 60.1
    assert hits(limits, who) == 1  # the second still does


def test_processes_count_together_in_redis(redis_url: str) -> None:
    one, other = RateLimits(redis_url), RateLimits(redis_url)
    who = actor(5, "key_shared")
    assert hits(one, who, 3) == 3
    assert hits(other, who) == 2
    with pytest.raises(RateLimited) as error:
        one.hit(who)
    assert 1 <= (error.value.retry_after or 0) <= 60


def test_without_redis_each_process_counts_and_logs_once() -> None:
    limits = RateLimits(f"redis://127.0.0.1:{free_port()}/0")
    with capture_logs() as logs:
        assert hits(limits, actor(3)) == 3
        limits._local_until = 1.0  # as if it were time to try Redis again
        assert hits(limits, actor(3)) == 0
    assert [line["event"] for line in logs] == ["rate_limit_redis_failed"]
