"""The distributed service: API and worker processes, each restarted if it dies."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import psutil

from app.core.platform.migrations import upgrade
from app.core.platform.processes import kill_with_parent
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from temi_client import TemiClient
from tests.leases import LONG_LEASES
from tests.servers import free_port
from tests.waiting import LONG_SECONDS, PATIENT, as_variables, wait_until

_QUICK = {"heartbeat_seconds": 1.0, "maintenance_seconds": 0.5, "checkpoint_seconds": 0.5}
# A lease expires only where a test needs it.
LONG_TIMES = {**_QUICK, **LONG_LEASES}
# Expired jobs are found within seconds. On a busy machine a live worker may lose a lease as
# well, which costs another attempt: for tests whose jobs may have any number of those.
SHORT_TIMES = {**_QUICK, "lease_seconds": 6.0, "self_kill_seconds": 4.0}
ANY_CRASHES = 1_000_000


class Member:
    """A process that is restarted when it dies, as by a container platform."""

    def __init__(self, word: str, environment: Mapping[str, str], log: Path) -> None:
        self._command = [sys.executable, "-m", "app.cli.main", word]
        self._environment = environment
        self._log = log
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                preexec_fn=kill_with_parent(),
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def dead(self) -> bool:
        return self.process.poll() is not None

    def send(self, number: int) -> None:
        if not self.dead:
            self.process.send_signal(number)

    def jobs(self) -> list[psutil.Process]:
        """Returns its job processes."""
        try:
            family = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [process for process in family if "spawn_main" in " ".join(_words(process))]


class Site:
    """Used as a context manager; `extra` are variables of single processes, by their name."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        apis: int = 1,
        extra: Mapping[str, Mapping[str, str]] | None = None,
        times: Mapping[str, float] = LONG_TIMES,
        **settings: Any,
    ) -> None:
        changes = {"data_dir": folder / "data", "torch_threads": 1, **PATIENT}
        changes |= {**times, **settings}
        self.settings = Settings(_env_file=None, **changes)
        self.runtime = Runtime(self.settings)
        self._changes = as_variables(changes)
        self._folder = folder
        self._extra = extra or {}
        self._ports = [free_port() for _ in range(apis)]
        self._worker_count = workers
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper")
        self.apis: list[Member] = []
        self.workers: list[Member] = []

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._ports]

    @property
    def members(self) -> list[Member]:
        return [*self.apis, *self.workers]

    def client(self, retries: int = 60) -> TemiClient:
        return TemiClient(self.urls[0], retries=retries, timeout=LONG_SECONDS)

    def http(self, api: int = 0) -> httpx.Client:
        return httpx.Client(base_url=self.urls[api], timeout=LONG_SECONDS)

    def busy_workers(self) -> list[Member]:
        return [worker for worker in self.workers if worker.jobs()]

    def is_up(self, url: str) -> bool:
        try:
            return httpx.get(f"{url}/readyz", timeout=LONG_SECONDS).status_code == 200
        except httpx.TransportError:
            return False

    def wait_until_up(self) -> None:
        for url in self.urls:
            wait_until(partial(self.is_up, url), f"{url} is up", pause=0.1)

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        upgrade(self.runtime.db)
        self.apis = [self._member("api", n, TEMI_PORT=str(p)) for n, p in enumerate(self._ports)]
        self.workers = [self._member("worker", number) for number in range(self._worker_count)]
        self._keeper.start()
        try:
            self.wait_until_up()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        if error is not None:
            error.add_note(self._last_words())

    def _member(self, word: str, number: int, **variables: str) -> Member:
        name = f"{word}-{number}"
        environment = {**os.environ, **self._changes, **variables, **self._extra.get(name, {})}
        return Member(word, environment, self._folder / f"{name}.log")

    def _keep(self) -> None:
        while not self._stopping.wait(0.1):
            for member in self.members:
                if member.dead:
                    member.start()

    def _stop(self) -> None:
        self._stopping.set()
        self._keeper.join()
        for member in self.members:
            for process in member.jobs():  # also suspended ones
                process.kill()
            member.process.kill()
        for member in self.members:
            member.process.wait()
        self.runtime.db.dispose()

    def _last_words(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in logs)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended in the meantime
        return []
