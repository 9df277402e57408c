"""Children are restarted when they die, and never outlive the supervisor."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import LONG_SECONDS, wait_until

# A child that writes its process id to a new file each time it starts, then runs its code.
_CHILD = """
import os, pathlib, sys, time, signal
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
folder = pathlib.Path(sys.argv[1])
(folder / f"{time.time_ns()}.tmp").write_text(str(os.getpid()))
for path in folder.glob("*.tmp"):
    path.rename(path.with_suffix(".pid"))
time.sleep(0.05 if sys.argv[2] == "dies" else 10**6)
"""
_SUPERVISOR = """
import json, sys
from app.core.platform.supervisor import Supervisor
Supervisor(json.loads(sys.argv[1]), stop_seconds=1.0).run()
"""
Start = Callable[..., tuple[subprocess.Popen[bytes], dict[str, Path]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A supervisor process over children of the given behaviors, and their folders."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(**behaviors: str) -> tuple[subprocess.Popen[bytes], dict[str, Path]]:
        folders = {name: tmp_path / name for name in behaviors}
        for folder in folders.values():
            folder.mkdir()
        commands = {
            name: [sys.executable, "-S", "-c", _CHILD, str(folders[name]), behavior]
            for name, behavior in behaviors.items()
        }
        process = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISOR, json.dumps(commands)], stderr=subprocess.PIPE
        )
        processes.append(process)
        return process, folders

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _pids(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in sorted(folder.glob("*.pid"))]


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_child_that_dies_is_started_again(start: Start) -> None:
    _, folders = start(steady="sleeps", weak="dies")
    wait_until(lambda: len(_pids(folders["weak"])) >= 2)
    assert len(_pids(folders["steady"])) == 1
    assert _alive(_pids(folders["steady"])[0])


def test_a_killed_child_is_started_again(start: Start) -> None:
    _, folders = start(steady="sleeps")
    wait_until(lambda: len(_pids(folders["steady"])) == 1)
    os.kill(_pids(folders["steady"])[0], signal.SIGKILL)
    wait_until(lambda: len(_pids(folders["steady"])) == 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_ends_all_children(start: Start, number: signal.Signals) -> None:
    process, folders = start(one="sleeps", two="stubborn")
    wait_until(lambda: all(_pids(folder) for folder in folders.values()))
    process.send_signal(number)
    assert process.wait(LONG_SECONDS) == 0
    assert not any(_alive(pid) for folder in folders.values() for pid in _pids(folder))


def test_a_killed_supervisor_leaves_no_children(start: Start) -> None:
    process, folders = start(one="sleeps", two="stubborn")
    wait_until(lambda: all(_pids(folder) for folder in folders.values()))
    process.kill()
    pids = [pid for folder in folders.values() for pid in _pids(folder)]
    wait_until(lambda: not any(_alive(pid) for pid in pids))
