"""Starts child processes, restarts those that die, and stops all at the end."""

import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from app.core.platform.processes import kill_with_parent

_POLL_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 30.0
_HEALTHY_AFTER_SECONDS = 10.0
log = structlog.get_logger()


@dataclass
class _Child:
    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    failures: int = 0


@dataclass
class Supervisor:
    """Runs until SIGINT or SIGTERM. Restarts of a child that keeps dying back off exponentially."""

    commands: Mapping[str, Sequence[str]]
    stop_seconds: float = 10.0
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.stopping.set())
        children = [_Child(name, command) for name, command in self.commands.items()]
        try:
            while not self.stopping.is_set():
                for child in children:
                    self._check(child)
                self.stopping.wait(_POLL_SECONDS)
        finally:
            self._stop(children)

    def _check(self, child: _Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if now >= child.restart_at:
                _start(child)
        elif (code := child.process.poll()) is not None:
            healthy = now - child.started_at > _HEALTHY_AFTER_SECONDS
            child.failures = 0 if healthy else child.failures + 1
            backoff = min(_MAX_BACKOFF_SECONDS, 0.5 * 2**child.failures)
            child.process, child.restart_at = None, now + backoff
            log.warning("child_died", name=child.name, exit_code=code, restart_in=backoff)

    def _stop(self, children: Sequence[_Child]) -> None:
        alive = [child.process for child in children if child.process is not None]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + self.stop_seconds
        for process in alive:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(child: _Child) -> None:
    # Its own process group: Ctrl-C reaches only the supervisor, which stops the children.
    child.process = subprocess.Popen(
        child.command,
        stdin=subprocess.DEVNULL,
        process_group=0,
        preexec_fn=kill_with_parent(),
    )
    child.started_at = time.monotonic()
    log.info("child_started", name=child.name, pid=child.process.pid)
