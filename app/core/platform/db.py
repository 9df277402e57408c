"""Engine and sessions. A session is one unit of work: it commits completely or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

_BUSY_MS = 30_000  # how long a writer waits for another transaction in SQLite
_STATEMENT_SECONDS = 60.0
_CLIENT_MARGIN_SECONDS = 5.0  # the server's own timeout comes first
_IDLE_SECONDS = 20.0  # within a transaction that writes; less than a lease
_LOCK_SHARE = 0.5  # of the idle timeout, for a row that another transaction has locked


class Database:
    """`read()` and `write()` return SQLAlchemy sessions; `write()` commits at the end."""

    def __init__(
        self,
        url: str,
        statement_seconds: float = _STATEMENT_SECONDS,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self.engine = _create_engine(url, statement_seconds, idle_seconds)
        self._writer = self.engine.execution_options(temi_write=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        with _reader(self.engine) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        from app.core.platform.audit import recorded  # with all tables; a start may only read

        with (
            Session(self._writer, expire_on_commit=False) as session,
            session.begin(),
            recorded(session),
        ):
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A session whose reads all see the rows as of the first read."""
        engine = self.engine
        if engine.dialect.name == "postgresql":  # SQLite does so in every transaction
            engine = engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with _reader(engine) as session:
            yield session

    def dispose(self) -> None:
        self.engine.dispose()


@contextmanager
def _reader(engine: Engine) -> Iterator[Session]:
    """Ignores a connection that is lost after the last read."""
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
    """Whether the server was unreachable, closed the connection, or timed out on a lock: not an
    error of the statement."""
    state = getattr(error.orig, "sqlstate", "")  # that psycopg's errors have; None: no connection
    if state == "":
        return False  # SQLite is a file: waiting does not help
    # connection lost; server shutdown; idle in transaction; lock timeout
    return state is None or state.startswith(("08", "57P", "25P03", "55P03"))


def _create_engine(url: str, statement_seconds: float, idle_seconds: float) -> Engine:
    if make_url(url).get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    import psycopg  # with its C library, only where there is a PostgreSQL

    from app.core.platform.connection_timeout import connection_class

    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=10,
        hide_parameters=True,  # errors are logged, and the log must not hold values
        connect_args={
            "connect_timeout": 5,
            # A machine that vanished is noticed within a lease, in either direction.
            "tcp_user_timeout": 20_000,
            "keepalives_idle": 10,
            "keepalives_interval": 3,
            "keepalives_count": 3,
            "options": f"-c statement_timeout={round(statement_seconds * 1000)}",
        },
    )
    timeout_connection = connection_class(statement_seconds + _CLIENT_MARGIN_SECONDS)

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Any:
        return timeout_connection.connect(*args, **options)

    idle_ms = round(idle_seconds * 1000)
    # A process that is stopped within a transaction, or its machine, would keep its rows locked.
    # Its other transactions that wait for those locks would get them next, each for another idle
    # timeout; their lock timeout is shorter, so they fail before.
    limits = (
        f"SELECT set_config('idle_in_transaction_session_timeout', '{idle_ms}', true), "
        f"set_config('lock_timeout', '{round(idle_ms * _LOCK_SHARE)}', true)"
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if _writes(connection):
            connection.exec_driver_sql(limits)

    @event.listens_for(engine, "handle_error")
    def _translate(context: ExceptionContext) -> None:
        # The driver calls it an internal error; it is a lost connection.
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
        connection.isolation_level = None  # BEGIN is sent below
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # In WAL mode SQLite does not let a transaction that has read wait for the write lock: it
        # fails at once. Writers therefore take the lock when they begin.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if _writes(connection) else "BEGIN")

    return engine


def _writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get("temi_write", False))
