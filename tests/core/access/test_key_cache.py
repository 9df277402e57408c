"""A key is read from the database now and then, not for every request."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, update

from app.core.access import key_cache as ring_module
from app.core.access.key_cache import ApiKeyCache
from app.core.access.keys import hash_key, revoke_key
from app.core.platform.actor import ANONYMOUS, OWNER, SCOPES
from app.core.platform.clock import db_now
from app.core.platform.errors import Forbidden, Unauthorized
from app.core.platform.tables import ApiKey
from app.core.runtime import Runtime
from tests.conftest import MakeSettings
from tests.keys import make_key
from tests.waiting import LONG_SECONDS


@pytest.fixture
def cache(any_runtime: Runtime) -> ApiKeyCache:
    return ApiKeyCache(any_runtime.db, any_runtime.settings)


@contextmanager
def counted(runtime: Runtime) -> Iterator[list[str]]:
    """The SQL statements that are sent in the block."""
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(runtime.db.engine, "after_cursor_execute", note)
    yield statements
    event.remove(runtime.db.engine, "after_cursor_execute", note)


def test_without_any_key_everything_is_allowed(cache: ApiKeyCache) -> None:
    assert cache.cached(None) is None
    assert cache.authenticate(None) is ANONYMOUS
    assert cache.cached(None) is ANONYMOUS
    assert cache.cached("whatever") is ANONYMOUS
    ANONYMOUS.check("admin")


def test_the_first_key_makes_keys_required(any_runtime: Runtime, cache: ApiKeyCache) -> None:
    assert cache.authenticate(None) is ANONYMOUS
    key_id, text = make_key(any_runtime)
    cache.clear()
    with pytest.raises(Unauthorized):
        cache.authenticate(None)
    assert cache.authenticate(text).key_id == key_id
    with any_runtime.db.write() as session:
        revoke_key(session, key_id)
    cache.clear()
    with pytest.raises(Unauthorized):
        cache.authenticate(text)
    with pytest.raises(Unauthorized):  # the last key is gone, the service stays shut
        ApiKeyCache(any_runtime.db, any_runtime.settings).authenticate(None)


def test_an_actor_has_the_rights_of_its_key(any_runtime: Runtime, cache: ApiKeyCache) -> None:
    key_id, text = make_key(
        any_runtime,
        tenant="acme",
        name="phone",
        scopes=["predict"],
        requests_per_minute=7,
        storage_bytes=2**40,
    )
    actor = cache.authenticate(text)
    assert (actor.tenant, actor.key_id, actor.key_name) == ("acme", key_id, "phone")
    assert (actor.requests_per_minute, actor.storage_bytes) == (7, 2**40)
    actor.check("predict")
    with pytest.raises(Forbidden, match="write"):
        actor.check("write")


def test_admin_includes_all_scopes(any_runtime: Runtime, cache: ApiKeyCache) -> None:
    actor = cache.authenticate(make_key(any_runtime, scopes=["admin"])[1])
    assert all(actor.may(scope) for scope in SCOPES)


def test_a_cached_key_reads_no_row(any_runtime: Runtime, cache: ApiKeyCache) -> None:
    _, text = make_key(any_runtime)
    cache.authenticate(text)
    with counted(any_runtime) as statements:
        for _ in range(100):
            assert cache.cached(text) is not None
    assert statements == []


def test_a_revoked_key_leaves_this_cache_at_once_and_others_soon(
    any_runtime: Runtime, cache: ApiKeyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_id, text = make_key(any_runtime)
    elsewhere = ApiKeyCache(any_runtime.db, any_runtime.settings)
    cache.authenticate(text), elsewhere.authenticate(text)
    with any_runtime.db.write() as session:
        revoke_key(session, key_id)
    cache.clear()
    assert cache.cached(text) is None
    assert elsewhere.cached(text) is not None
    later = time.monotonic() + ring_module.CACHE_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert elsewhere.cached(text) is None
    with pytest.raises(Unauthorized):
        elsewhere.authenticate(text)


def test_an_expired_key_is_refused(any_runtime: Runtime, cache: ApiKeyCache) -> None:
    key_id, text = make_key(any_runtime, expires_in_days=1)
    assert cache.authenticate(text).key_id == key_id
    with any_runtime.db.write() as session:
        session.execute(update(ApiKey).values(expires_at=db_now() - 1))
    cache.clear()
    with pytest.raises(Unauthorized):
        cache.authenticate(text)


def test_a_key_is_not_cached_beyond_its_expiry(
    any_runtime: Runtime, cache: ApiKeyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_module, "CACHE_SECONDS", 2 * LONG_SECONDS)
    _, text = make_key(any_runtime, expires_in_days=1)
    with any_runtime.db.write() as session:
        session.execute(update(ApiKey).values(expires_at=db_now() + LONG_SECONDS))
    cache.authenticate(text)
    until = cache._cached[hash_key(text)][1]
    assert until - time.monotonic() <= LONG_SECONDS


def test_a_key_read_before_a_change_is_not_cached(
    any_runtime: Runtime, cache: ApiKeyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = make_key(any_runtime)
    read = cache._row

    def slowly(sha256: str) -> Any:
        row = read(sha256)
        cache.clear()  # by another thread, which has just revoked it
        return row

    monkeypatch.setattr(cache, "_row", slowly)
    cache.authenticate(text)
    assert cache.cached(text) is None


def test_random_keys_fill_no_memory(any_runtime: Runtime, cache: ApiKeyCache) -> None:
    make_key(any_runtime)
    for i in range(20):
        with pytest.raises(Unauthorized):
            cache.authenticate(f"temi_{i:043}")
    assert cache._cached == {}


def test_the_cache_is_bounded(
    any_runtime: Runtime, cache: ApiKeyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_module, "_MAX_CACHED", 3)
    for _ in range(8):
        cache.authenticate(make_key(any_runtime)[1])
        assert len(cache._cached) <= 3


def test_malformed_keys_read_no_row(any_runtime: Runtime, cache: ApiKeyCache) -> None:
    cache.authenticate(make_key(any_runtime)[1])
    with counted(any_runtime) as statements, pytest.raises(Unauthorized):
        cache.authenticate("' OR 1=1 --")
    assert statements == []


def test_the_key_of_the_settings(make_settings: MakeSettings) -> None:
    runtime = Runtime(make_settings(api_key="a-long-enough-key-for-tests"))
    cache = ApiKeyCache(runtime.db, runtime.settings)
    assert cache.cached("a-long-enough-key-for-tests") is OWNER
    for wrong in (None, "", "a-long-enough-key-for-tests ", "schlüssel"):
        with pytest.raises(Unauthorized):
            cache.authenticate(wrong)
    runtime.db.dispose()
