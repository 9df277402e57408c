"""A PostgreSQL that is frozen keeps nobody waiting for ever."""

import time

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.core.db import Database, is_gone
from app.core.patience import connection_class
from tests.servers import frozen


def test_a_silent_server_is_given_up(postgres_url: str) -> None:
    url = postgres_url.replace("+psycopg", "")
    with connection_class(0.5).connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with frozen(postgres_url):
            started = time.monotonic()
            with pytest.raises(psycopg.OperationalError, match="has not answered"):
                connection.execute("SELECT 1")
            assert time.monotonic() - started < 10
        assert connection.closed


def test_an_answer_in_time_is_waited_for(postgres_url: str) -> None:
    url = postgres_url.replace("+psycopg", "")
    with connection_class(30.0).connect(url) as connection:
        assert connection.execute("SELECT 7 FROM pg_sleep(0.5)").fetchone() == (7,)


def test_pooled_connections_come_back_after_the_silence(postgres_url: str) -> None:
    db = Database(postgres_url, statement_seconds=0.5)
    with db.read() as session:
        assert session.scalar(text("SELECT 1")) == 1
    with frozen(postgres_url), db.read() as session:
        with pytest.raises(OperationalError) as caught:
            session.scalar(text("SELECT 1"))
        assert is_gone(caught.value)
    with db.read() as session:
        assert session.scalar(text("SELECT 1")) == 1
    db.dispose()


def test_a_slow_statement_is_not_a_lost_database(postgres_url: str) -> None:
    db = Database(postgres_url, statement_seconds=0.2)
    with db.read() as session, pytest.raises(OperationalError, match="timeout") as caught:
        session.execute(text("SELECT pg_sleep(3)"))
    assert not is_gone(caught.value)
    db.dispose()
