"""Output between tests is shown only if a test has failed.

Threads of servers, child processes and exit handlers may write when no test is running, and pytest
captures nothing then. In the processes of pytest-xdist such lines go to a file instead of the
terminal; pytest's own report of a crash does not.
"""

import os
import tempfile
from typing import Any

import pytest

_MOST_CHARACTERS = 20_000  # of the end of it, from each process
_gathered = pytest.StashKey[dict[str, str]]()
_file = pytest.StashKey[Any]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[_gathered] = {}
        return
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is None or not capture.is_globally_capturing():
        return
    config.stash[_file] = file = tempfile.TemporaryFile()  # noqa: SIM115 - until the process ends
    capture.stop_global_capturing()
    for output in (1, 2):
        os.dup2(file.fileno(), output)
    capture.start_global_capturing()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (file := session.config.stash.get(_file, None)) is not None:
        file.seek(0)
        text = file.read().decode(errors="replace")[-_MOST_CHARACTERS:]
        session.config.workeroutput["stray_output"] = text  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of pytest-xdist has ended; a crashed one has no output."""
    output = getattr(node, "workeroutput", {}).get("stray_output", "")
    if output.strip():
        node.config.stash[_gathered][node.gateway.id] = output


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if exitstatus == pytest.ExitCode.OK:
        return
    for name, output in config.stash.get(_gathered, {}).items():
        terminalreporter.section(f"written between tests by {name}")
        terminalreporter.write_line(output)
