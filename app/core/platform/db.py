"""Engine and sessions. A session is one unit of work: it commits whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

from app.core.platform.audit import recorded
from app.core.platform.connection_timeout import connection_class

_BUSY_MS = 30_000  # a writer waits this long for another one's transaction
_STATEMENT_SECONDS = 60.0
_MORE_SECONDS = 5.0  # for the server itself to end a statement that takes too long
_PAUSE_SECONDS = 20.0  # within a transaction that writes; less than a lease
_LOCK_SHARE = 0.5  # of that, for a row that another one holds


class Database:
    """`read()` for looking, `write()` for changing; both give a SQLAlchemy session."""

    def __init__(
        self,
        url: str,
        statement_seconds: float = _STATEMENT_SECONDS,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        self.engine = _create_engine(url, statement_seconds, pause_seconds)
        self._writer = self.engine.execution_options(temi_write=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        with _reader(self.engine) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        with (
            Session(self._writer, expire_on_commit=False) as session,
            session.begin(),
            recorded(session),
        ):
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Every read sees the rows as they were at the first one, however long it takes."""
        engine = self.engine
        if engine.dialect.name == "postgresql":  # SQLite does so in any transaction
            engine = engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with _reader(engine) as session:
            yield session

    def dispose(self) -> None:
        self.engine.dispose()


@contextmanager
def _reader(engine: Engine) -> Iterator[Session]:
    """What was read stays read if the server goes away before the transaction has ended."""
    session = Session(engine, expire_on_commit=False)
    try:
        yield session
    finally:
        try:
            session.close()
        except DBAPIError as error:
            if not is_gone(error):
                raise
            session.invalidate()


def lock_name(session: Session, name: str) -> None:
    """Locks a name until this writing transaction ends, where there is no row to lock."""
    if session.get_bind().dialect.name == "postgresql":
        # SQLite has one writer at a time anyway.
        lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
        session.execute(lock, {"name": name})


def is_gone(error: DBAPIError) -> bool:
    """The server could not be reached, ended the connection, or let a stopped process keep its
    rows from us: no fault of the statement."""
    if not isinstance(error.orig, psycopg.Error):
        return False  # SQLite is a file: it does not come back by waiting
    state = error.orig.sqlstate
    # connection lost; server shuts down; too long a pause in a transaction; too long for a lock
    return state is None or state.startswith(("08", "57P", "25P03", "55P03"))


def _create_engine(url: str, statement_seconds: float, pause_seconds: float) -> Engine:
    if make_url(url).get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=10,
        hide_parameters=True,  # errors are logged, and values are nobody's business there
        connect_args={
            "connect_timeout": 5,
            # A machine that vanished is noticed within a lease, whoever was to speak next.
            "tcp_user_timeout": 20_000,
            "keepalives_idle": 10,
            "keepalives_interval": 3,
            "keepalives_count": 3,
            "options": f"-c statement_timeout={round(statement_seconds * 1000)}",
        },
    )
    patient = connection_class(statement_seconds + _MORE_SECONDS)

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Any:
        return patient.connect(*args, **options)

    pause_ms = round(pause_seconds * 1000)
    # A process that is stopped here, or its whole machine, would keep its rows locked. What its
    # other threads were waiting for, they would hold next, each for another pause: whoever waits
    # for a lock gives up before that.
    limits = (
        f"SELECT set_config('idle_in_transaction_session_timeout', '{pause_ms}', true), "
        f"set_config('lock_timeout', '{round(pause_ms * _LOCK_SHARE)}', true)"
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if _writes(connection):
            connection.exec_driver_sql(limits)

    @event.listens_for(engine, "handle_error")
    def _name_rightly(context: ExceptionContext) -> None:
        # To the driver it is an internal error. It is as if the connection had been lost.
        cause = context.original_exception
        if isinstance(cause, psycopg.errors.IdleInTransactionSessionTimeout):
            raise OperationalError(context.statement, None, cause) from cause

    return engine


def _sqlite_engine(url: str) -> Engine:
    if database := make_url(url).database:
        Path(database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": _BUSY_MS / 1000})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could not wait for its turn in WAL:
        # SQLite refuses the upgrade at once. Writers therefore take the lock when they start.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if _writes(connection) else "BEGIN")

    return engine


def _writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get("temi_write", False))
