"""Shared fixtures: settings, databases, servers, the API."""

import gc
import os

# Several processes share the CPUs: threads must not wait in busy loops.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import hypothesis
import psutil
import pytest
import redis
import structlog
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, text

from app.core.platform import idempotency, logs
from app.core.platform.db import Database
from app.core.platform.migrations import upgrade
from app.core.platform.processes import users_umask
from app.core.platform.settings import Settings, get_settings
from app.core.platform.tables import Base
from app.core.runtime import Runtime
from app.main import create_app
from tests import promises, stray_output
from tests.buckets import new_bucket
from tests.converted import CONVERTED
from tests.leases import LONG_LEASES
from tests.servers import run_postgres, run_redis, run_s3
from tests.waiting import PATIENT

MakeSettings = Callable[..., Settings]
MakeClient = Callable[..., TestClient]

# The same examples every time, and no time limit on a busy machine.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")

# Workers check often, and no lease expires.
_TIMES = {"heartbeat_seconds": 0.3, "maintenance_seconds": 0.2, **LONG_LEASES}
_LOCAL = "http://127.0.0.1"
_BYTES_PER_PROCESS = 3_000_000_000
_MAX_PROCESSES = 8
_LONG_FOLDERS = ("chaos", "e2e", "web")  # they start whole services


def pytest_configure(config: pytest.Config) -> None:
    from tests import trained  # it imports this file

    for plugin in (promises, stray_output, trained):
        config.pluginmanager.register(plugin)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `--numprocesses auto`: one more than CPUs, because many tests wait for other processes,
    within the memory: each loads torch, and so do the services that it starts."""
    by_memory = psutil.virtual_memory().available // _BYTES_PER_PROCESS
    return max(1, min((os.cpu_count() or 1) + 1, by_memory, _MAX_PROCESSES))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests run first, so that all processes are busy to the end."""
    items.sort(key=lambda item: item.path.parent.name not in _LONG_FOLDERS)  # stable


def pytest_collection_finish() -> None:
    """Imported modules stay to the end: later garbage collections skip them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # libraries check for leaks when the process ends


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--promises", type=Path, help="a file for their table, as Markdown")


@pytest.fixture(autouse=True, scope="session")
def _unset_shell_settings() -> Iterator[None]:
    """All tests and the processes that they start share the folder of converted backbones."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TEMI_")]:
            patch.delenv(name)
        for name, value in CONVERTED.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(autouse=True)
def _reset_process_state() -> Iterator[None]:
    """Resets the global state of the process after each test."""
    get_settings.cache_clear()
    umask = users_umask()
    yield
    os.umask(umask)
    for name in [name for name in os.environ if name.startswith("TEMI_")]:
        if name not in CONVERTED:
            del os.environ[name]  # a command hands its options to its children this way
    get_settings.cache_clear()
    idempotency._in_flight.clear()
    logs._process_fields.clear()
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a real PostgreSQL server, without a database."""
    with run_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    with run_redis() as url:
        yield url


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """An empty Redis: messages of earlier tests must not reach this one."""
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
    return redis_server


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """URL of an S3-compatible store without buckets."""
    with run_s3() as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables, to be copied: cheaper than migrating for every test."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> str:
    """A database with all tables, emptied after each test: cheaper than a new one each time."""
    _administer(postgres_server, "CREATE DATABASE temi")
    migrate(f"{postgres_server}/temi")
    return f"{postgres_server}/temi"


@pytest.fixture
def postgres_url(postgres_database: str) -> Iterator[str]:
    """A database with all tables and no rows."""
    yield postgres_database
    db = Database(postgres_database)
    with db.write() as session:
        # a connection that still holds a lock is left from this test
        session.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND state <> 'idle'"
            )
        )
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(table.delete())
    db.dispose()


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> Iterator[str]:
    """A new database without any table."""
    name = f"empty_{uuid4().hex}"
    _administer(postgres_server, f"CREATE DATABASE {name}")
    yield f"{postgres_server}/{name}"
    _administer(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def storage_settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A folder, unless a test is marked with `any_storage`."""
    in_bucket = getattr(request, "param", "folder") == "bucket"
    return new_bucket(request.getfixturevalue("s3_url")) if in_bucket else {}


@pytest.fixture
def make_settings(
    tmp_path: Path, sqlite_template: Path, storage_settings: dict[str, Any]
) -> MakeSettings:
    """Settings in a folder of this test with any changes; SQLite, filesystem broker."""

    def make(**changes: Any) -> Settings:
        data_dir = tmp_path / "data"
        data_dir.mkdir(exist_ok=True)
        settings = Settings(
            **{
                "_env_file": None,
                "data_dir": data_dir,
                **_TIMES,
                **PATIENT,
                **storage_settings,
                **changes,
            }
        )
        if not settings.database_url and not (data_dir / "temi.db").exists():
            shutil.copy(sqlite_template, data_dir / "temi.db")
        return settings

    return make


@pytest.fixture
def own_conversions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No backbone is converted yet; use it before `settings`."""
    for name in CONVERTED:
        monkeypatch.setenv(name, str(tmp_path / "onnx"))


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    return make_settings()


@pytest.fixture
def runtime(settings: Settings) -> Iterator[Runtime]:
    """On SQLite, with all tables."""
    yield from _runtime(settings)


@pytest.fixture(params=["sqlite", "postgresql"])
def any_settings(request: pytest.FixtureRequest, make_settings: MakeSettings) -> Settings:
    """Once for each database."""
    if request.param == "sqlite":
        return make_settings()
    return make_settings(database_url=request.getfixturevalue("postgres_url"))


@pytest.fixture
def any_runtime(any_settings: Settings) -> Iterator[Runtime]:
    """Once for each database, with all tables: for tests of SQL."""
    yield from _runtime(any_settings)


@contextmanager
def running_api(settings: Settings, **options: Any) -> Iterator[TestClient]:
    """The API in this process; `options` are TestClient's."""
    before = tempfile.tempdir
    try:
        # A service without a key answers only to host names of this machine.
        with TestClient(create_app(settings), **{"base_url": _LOCAL, **options}) as api:
            yield api
    finally:
        tempfile.tempdir = before  # the API changes it


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    """The API in this process, for the given settings."""
    with ExitStack() as clients:
        yield lambda *given, **options: clients.enter_context(running_api(*given, **options))


@pytest.fixture
def client(make_client: MakeClient, settings: Settings) -> TestClient:
    """The API in this process, on the same data as `runtime`."""
    return make_client(settings)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk; other tests use /dev/full")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def _runtime(settings: Settings) -> Iterator[Runtime]:
    runtime = Runtime(settings)
    yield runtime
    runtime.db.dispose()
    if "celery" in vars(runtime):
        runtime.celery.close()


def migrate(url: str) -> None:
    db = Database(url)
    upgrade(db)
    db.dispose()


def _administer(server: str, statement: str) -> None:
    engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
