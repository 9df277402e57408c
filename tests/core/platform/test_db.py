"""A session is one unit of work; writers wait for each other."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text

from app.core.datasets.rows import create_dataset
from app.core.platform.db import Database
from app.core.platform.tables import Dataset, Image
from app.core.runtime import Runtime
from tests.waiting import LONG_SECONDS


def _add(db: Database, name: str) -> str:
    with db.write() as session:
        return create_dataset(session, tenant="t", name=name).id


def _names(db: Database) -> list[str]:
    with db.read() as session:
        return list(session.scalars(select(Dataset.name).order_by(Dataset.id)))


def test_a_write_is_kept(any_runtime: Runtime) -> None:
    _add(any_runtime.db, "kept")
    assert _names(any_runtime.db) == ["kept"]


def test_an_error_leaves_nothing(any_runtime: Runtime) -> None:
    def fail() -> None:
        with any_runtime.db.write() as session:
            create_dataset(session, tenant="t", name="half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert _names(any_runtime.db) == []
    _add(any_runtime.db, "next")  # and nothing stays locked
    assert _names(any_runtime.db) == ["next"]


def test_what_is_not_committed_is_not_seen(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        create_dataset(session, tenant="t", name="soon")
        assert _names(any_runtime.db) == []
    assert _names(any_runtime.db) == ["soon"]


def test_rows_can_be_used_after_their_session(any_runtime: Runtime) -> None:
    _add(any_runtime.db, "row")
    with any_runtime.db.read() as session:
        row = session.scalars(select(Dataset)).one()
    assert row.name == "row"
    assert row.created_at == pytest.approx(time.time(), abs=60)


def test_references_are_enforced(any_runtime: Runtime) -> None:
    """Deleting a dataset deletes its images: SQLite does so only with foreign keys on."""
    dataset_id = _add(any_runtime.db, "parent")
    with any_runtime.db.write() as session:
        session.add(
            Image(
                id="img_1",
                dataset_id=dataset_id,
                position=0,
                name="a",
                sha256="0" * 64,
                width=1,
                height=1,
                format="PNG",
                bytes=1,
            )
        )
    with any_runtime.db.write() as session:
        session.execute(text("DELETE FROM datasets"))
    with any_runtime.db.read() as session:
        assert session.scalars(select(Image)).all() == []


def test_a_writer_waits_for_another_one(runtime: Runtime) -> None:
    with ThreadPoolExecutor(1) as pool:
        with runtime.db.write() as session:
            session.execute(text("DELETE FROM datasets"))
            second = pool.submit(_add, runtime.db, "second")
            with pytest.raises(TimeoutError):
                second.result(0.3)  # it does not fail at once, and does not come first
        second.result(LONG_SECONDS)
    assert _names(runtime.db) == ["second"]


def test_reading_first_and_writing_later_loses_no_update(runtime: Runtime) -> None:
    """In SQLite's WAL mode such a transaction fails at once unless it locks when it starts."""
    dataset_id = _add(runtime.db, "counter")

    def count(_: int) -> None:
        with runtime.db.write() as session:
            row = session.get_one(Dataset, dataset_id)
            row.image_count = row.image_count + 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(40)))
    with runtime.db.read() as session:
        assert session.get_one(Dataset, dataset_id).image_count == 40


def test_readers_do_not_wait_for_a_writer(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        session.execute(text("DELETE FROM datasets"))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(_names, any_runtime.db).result(LONG_SECONDS) == []
