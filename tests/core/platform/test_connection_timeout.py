"""Timeouts of connections to a frozen PostgreSQL."""

import time

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.core.platform.connection_timeout import connection_class
from app.core.platform.db import Database, is_gone
from tests.servers import frozen
from tests.waiting import LONG_SECONDS, wait_until

_TIMEOUTS = ("idle_in_transaction_session_timeout", "lock_timeout")


def test_a_silent_server_times_out(postgres_url: str) -> None:
    url = postgres_url.replace("+psycopg", "")
    with connection_class(0.5).connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        silence = pytest.raises(psycopg.OperationalError, match="no response from the database")
        with frozen(postgres_url), silence:
            connection.execute("SELECT 1")
        assert connection.closed


def test_a_response_in_time_is_returned(postgres_url: str) -> None:
    url = postgres_url.replace("+psycopg", "")
    with connection_class(LONG_SECONDS).connect(url) as connection:
        assert connection.execute("SELECT 7 FROM pg_sleep(0.5)").fetchone() == (7,)


def test_pooled_connections_recover_after_a_timeout(postgres_url: str) -> None:
    db = Database(postgres_url, statement_seconds=0.5)
    with db.read() as session:
        assert session.scalar(text("SELECT 1")) == 1
    with frozen(postgres_url), db.read() as session:
        with pytest.raises(OperationalError) as caught:
            session.scalar(text("SELECT 1"))
        assert is_gone(caught.value)
    wait_until(lambda: _answers(db), "a connection is good again")
    db.dispose()


def _answers(db: Database) -> bool:
    """Half a second for a statement may be too short on a busy machine."""
    try:
        with db.read() as session:
            return bool(session.scalar(text("SELECT 1")) == 1)
    except OperationalError:
        return False


def test_a_slow_statement_is_not_a_lost_database(postgres_url: str) -> None:
    db = Database(postgres_url, statement_seconds=0.2)
    with db.read() as session, pytest.raises(OperationalError, match="timeout") as caught:
        session.execute(text("SELECT pg_sleep(600)"))
    assert not is_gone(caught.value)
    db.dispose()


def test_a_stopped_writer_loses_its_locks(postgres_url: str) -> None:
    zombie = Database(postgres_url, idle_seconds=0.5)
    other = Database(postgres_url, statement_seconds=LONG_SECONDS, idle_seconds=LONG_SECONDS)
    with other.write() as session:
        session.execute(text("CREATE TABLE held (n int)"))
        session.execute(text("INSERT INTO held VALUES (0)"))

    def write_with_a_break() -> None:
        with zombie.write() as session:
            session.execute(text("UPDATE held SET n = 1"))
            with other.write() as theirs:  # waits for the lock
                theirs.execute(text("UPDATE held SET n = n + 10"))
            session.execute(text("SELECT 1"))

    with pytest.raises(OperationalError) as caught:
        write_with_a_break()
    assert is_gone(caught.value)
    with zombie.read() as session:
        assert session.scalar(text("SELECT n FROM held")) == 10
    for db in (zombie, other):
        db.dispose()


def test_the_lock_timeout_is_shorter_than_the_idle_timeout(postgres_url: str) -> None:
    """A process that is stopped in several transactions would lock the row in each, in turn."""
    db, impatient = (Database(postgres_url, idle_seconds=s) for s in (LONG_SECONDS, 2.0))
    with db.write() as session:
        session.execute(text("CREATE TABLE wanted (n int)"))
        session.execute(text("INSERT INTO wanted VALUES (0)"))
    with impatient.write() as session:
        shown = [session.scalar(text(f"SHOW {name}")) for name in _TIMEOUTS]
    assert shown == ["2s", "1s"]  # shorter than the idle timeout
    with db.write() as session:
        session.execute(text("UPDATE wanted SET n = 1"))
        with pytest.raises(OperationalError, match="lock") as caught, impatient.write() as theirs:
            theirs.execute(text("UPDATE wanted SET n = 2"))
        assert is_gone(caught.value)  # a lock timeout is not an error of the statement
    with db.read() as session:
        assert session.scalar(text("SELECT n FROM wanted")) == 1
    for each in (db, impatient):
        each.dispose()


def test_a_connection_lost_after_the_last_read_is_ignored(postgres_url: str) -> None:
    db, other = Database(postgres_url), Database(postgres_url)
    with db.read() as session:
        pid = session.scalar(text("SELECT pg_backend_pid()"))
        with other.read() as theirs:
            theirs.execute(text(f"SELECT pg_terminate_backend({pid})"))
    with db.read() as session:
        assert session.scalar(text("SELECT 1")) == 1
    for each in (db, other):
        each.dispose()


def test_a_reading_transaction_may_be_idle(postgres_url: str) -> None:
    db = Database(postgres_url, idle_seconds=0.2)
    with db.read() as session:
        session.execute(text("SELECT 1"))
        time.sleep(0.6)
        assert session.scalar(text("SELECT 2")) == 2
    db.dispose()
