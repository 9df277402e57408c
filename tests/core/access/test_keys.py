"""Keys are random, stored as hashes, and revoked permanently."""

import re
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core.access.keys import create_key, database_has_keys, has_keys, hash_key, revoke_key
from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.tables import ApiKey
from app.core.runtime import Runtime


def test_a_key_is_256_random_bits_and_only_its_hash_is_stored(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        first, text = create_key(session, tenant="a", name="x", scopes=["read"])
        _, other = create_key(session, tenant="a", name="x", scopes=["read"])
    assert re.fullmatch(r"temi_[A-Za-z0-9_-]{43}", text)
    assert text != other
    with any_runtime.db.read() as session:
        stored = session.get_one(ApiKey, first.id)
    assert stored.sha256 == hash_key(text)
    assert text not in str(vars(stored))


def test_scopes_are_stored_once_and_in_order(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        key, _ = create_key(session, tenant="a", name="x", scopes=["predict", "read", "predict"])
    assert key.scopes == ["read", "predict"]


def test_it_expires_by_the_database_clock(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        key, _ = create_key(session, tenant="a", name="x", scopes=["read"], expires_in_days=2)
        now = session.scalar(select(db_now()))
    assert key.expires_at is not None
    assert now is not None
    assert key.expires_at - now == pytest.approx(2 * 86_400, abs=30)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"tenant": "A tenant"}, "tenant"),
        ({"tenant": "../x"}, "tenant"),
        ({"tenant": "t" * 65}, "tenant"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "everything"]}, "scopes"),
        ({"name": ""}, "name"),
        ({"name": "n" * 201}, "name"),
    ],
)
def test_invalid_key_parameters(runtime: Runtime, wrong: dict[str, object], field: str) -> None:
    good: dict[str, object] = {"tenant": "a", "name": "x", "scopes": ["read"]}
    with pytest.raises(InvalidRequest) as error, runtime.db.write() as session:
        create_key(session, **(good | wrong))  # type: ignore[arg-type]
    assert error.value.errors[0].field == field


def test_revoking_is_permanent_and_limited_to_the_tenant(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        key, _ = create_key(session, tenant="a", name="x", scopes=["read"])
    with pytest.raises(NotFound), any_runtime.db.write() as session:
        revoke_key(session, key.id, tenant="b")
    with any_runtime.db.write() as session:
        revoked_at = revoke_key(session, key.id, tenant="a").revoked_at
        assert revoked_at is not None
        assert revoke_key(session, key.id).revoked_at == revoked_at
        assert has_keys(session)  # it counts for whether the service is open


def test_a_database_without_tables_has_no_keys(tmp_path: Path, runtime: Runtime) -> None:
    empty = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    assert not database_has_keys(empty)
    empty.dispose()
    assert not database_has_keys(runtime.db)
    with runtime.db.write() as session:
        create_key(session, tenant="a", name="x", scopes=["read"])
    assert database_has_keys(runtime.db)
