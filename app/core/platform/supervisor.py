"""One process tree: children are started, restarted when they die, and gone at the end."""

import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from app.core.platform.processes import bound_to_us

_TICK = 0.2
_LONGEST_PAUSE = 30.0
_HEALTHY_AFTER = 10.0
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
    """Runs until told to stop. A child that keeps dying is restarted more and more slowly."""

    commands: Mapping[str, Sequence[str]]
    stop_seconds: float = 10.0
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.stopping.set())
        children = [_Child(name, command) for name, command in self.commands.items()]
        try:
            while not self.stopping.wait(_TICK):
                for child in children:
                    self._tend(child)
        finally:
            self._stop(children)

    def _tend(self, child: _Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if now >= child.restart_at:
                _start(child)
        elif (code := child.process.poll()) is not None:
            healthy = now - child.started_at > _HEALTHY_AFTER
            child.failures = 0 if healthy else child.failures + 1
            pause = min(_LONGEST_PAUSE, 0.5 * 2**child.failures)
            child.process, child.restart_at = None, now + pause
            log.warning("child_died", name=child.name, exit_code=code, restart_in=pause)

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
    # A group of its own: Ctrl-C reaches only us, and we end the children in order.
    child.process = subprocess.Popen(
        child.command,
        stdin=subprocess.DEVNULL,
        process_group=0,
        preexec_fn=bound_to_us(),
    )
    child.started_at = time.monotonic()
    log.info("child_started", name=child.name, pid=child.process.pid)
