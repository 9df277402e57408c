import time

from sqlalchemy import select

from app.core.platform.clock import db_now
from app.core.runtime import Runtime


def test_the_databases_clock_equals_the_hosts(any_runtime: Runtime) -> None:
    with any_runtime.db.read() as session:
        before = time.time()
        now = session.scalar(select(db_now()))
        after = time.time()
    assert isinstance(now, float)
    assert before - 0.01 <= now <= after + 0.01


def test_the_clock_advances_within_a_transaction(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        first = session.scalar(select(db_now()))
        time.sleep(0.05)
        second = session.scalar(select(db_now()))
    assert first is not None
    assert second is not None
    assert second - first > 0.04
