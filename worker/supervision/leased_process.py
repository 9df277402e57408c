"""Supervision of a child process whose work is claimed by a lease: a job's, or a shard's.

The supervising process stays free of torch and of long calculations, so it renews the lease in
time whatever the child does.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Event
from typing import Any, Literal

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.core.platform.errors import LeaseLost
from app.core.runtime import Runtime
from worker.supervision import processes
from worker.supervision.metrics import metrics
from worker.supervision.stalls import Stall, StallDetector
from worker.supervision.watchdog import Watchdog

_TICK_SECONDS = 0.5
_RETRY_SECONDS = 0.5
log = structlog.get_logger()


@dataclass(frozen=True)
class Exit:
    """Why a child process has ended."""

    reason: Literal["exited", "stopping", "cancelled", "stalled", "lease_lost", "lease_expired"]
    exit_code: int = 0  # for "exited"
    timed_out: bool = False  # killed, because the database did not answer
    stall: Stall | None = None

    @property
    def crashed(self) -> bool:
        """False if the process was killed for an outage, or ended itself for one."""
        return self.exit_code not in (0, processes.OUTAGE_EXIT_CODE) and not self.timed_out


class LeasedProcess(ABC):
    """Starts a child process, reads its messages and renews the lease until it ends."""

    grace_seconds = 0.0
    """How long the child may go on after its lease is lost, to end by itself."""

    def __init__(self, runtime: Runtime, stage: str | None = None) -> None:
        self._runtime = runtime
        self._settings = runtime.settings
        self._stage = stage
        self._tried_at = self._renewed_at = time.monotonic()

    @abstractmethod
    def _start(self) -> tuple[BaseProcess, Connection]:
        """Starts the child; returns it and the pipe with its messages."""

    @abstractmethod
    def _on_message(self, message: Any) -> None: ...

    @property
    @abstractmethod
    def _renewal_seconds(self) -> float:
        """Seconds between two renewals of the lease."""

    @abstractmethod
    def _renew(self) -> bool:
        """Renews the lease; returns False if the work was cancelled. Raises LeaseLost."""

    def supervise(self, stopping: Event) -> Exit:
        """Returns once the child has ended or was killed."""
        process, connection = self._start()
        self._stalls = StallDetector(process.pid, self._settings.stall_seconds, self._stage)
        with Watchdog(self._settings.self_kill_seconds, process.kill) as self._watchdog:
            try:
                while self._receive(connection):
                    if (ended := self._check(stopping)) is not None:
                        return ended
                process.join()
                return Exit("exited", process.exitcode or 0, self._watchdog.timed_out)
            except LeaseLost:
                process.join(self.grace_seconds)
                self._receive(connection)
                return Exit("lease_lost")
            finally:
                processes.kill(process)
                connection.close()

    def write(self, action: Callable[[Session], object]) -> None:
        """Repeats a write that fails for as long as the lease lasts; later it has no effect."""
        while True:
            try:
                with self._runtime.db.write() as session:
                    action(session)
                return
            except DBAPIError as error:
                if self._expired:
                    raise
                log.warning("write_failed", reason=str(error.orig))
            time.sleep(_RETRY_SECONDS)

    def _check(self, stopping: Event) -> Exit | None:
        """Returns why the child is to be killed now, or None."""
        if stopping.is_set():
            return Exit("stopping")
        if not self._keep_lease():
            return Exit("lease_expired" if self._expired else "cancelled")
        stall = self._stalls.find_stall()
        return None if stall is None else Exit("stalled", stall=stall)

    def _receive(self, connection: Connection) -> bool:
        """Handles messages for one tick; returns False once the child has closed the pipe."""
        until = time.monotonic() + _TICK_SECONDS
        try:
            while connection.poll(max(0.0, until - time.monotonic())):
                message = connection.recv()
                self._stalls.note(message)
                self._on_message(message)
        except EOFError:
            return False
        return True

    def _keep_lease(self) -> bool:
        """Renews the lease when that is due; returns False if the work is to end."""
        now = time.monotonic()
        if now - self._tried_at < self._renewal_seconds:
            return True
        self._tried_at = now
        try:
            wanted = self._renew()
        except DBAPIError as error:
            metrics.heartbeat_failures.inc()
            log.warning("heartbeat_failed", reason=str(error.orig))
            return not self._expired
        self._watchdog.reset()
        self._renewed_at = now
        return wanted

    @property
    def _expired(self) -> bool:
        """Whether another worker may soon claim the work."""
        return time.monotonic() - self._renewed_at > self._settings.self_kill_seconds
