"""Output between tests is shown only if a test has failed."""

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import LONG_SECONDS

_ROOT = Path(__file__).parents[1]
_TEST = """
import atexit, os, sys

atexit.register(lambda: os.write(2, b"LINE OF THE END"))

def test_it():
    print("LINE OF THE TEST", file=sys.stderr)
    assert {passes}
"""
_CONFTEST = """
import os

def pytest_runtest_logfinish():
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.write(2, b"LINE BETWEEN TESTS")
"""


def _run(folder: Path, *, passes: bool) -> str:
    (folder / "test_it.py").write_text(_TEST.format(passes=passes))
    (folder / "conftest.py").write_text(_CONFTEST)
    command = [sys.executable, "-m", "pytest", "-p", "tests.stray_output", "-n", "1", str(folder)]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), "-p", "no:cacheprovider", "-c", os.devnull],
        env=_environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS,
    )
    assert done.returncode == (0 if passes else 1), f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def _environment() -> dict[str, str]:
    """The environment without the variables of pytest-xdist, which may run this test."""
    own = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    return own | {"PYTHONPATH": str(_ROOT)}


def test_a_good_run_shows_none(tmp_path: Path) -> None:
    assert "LINE" not in _run(tmp_path, passes=True)


def test_a_failure_shows_those_of_its_process(tmp_path: Path) -> None:
    said = _run(tmp_path, passes=False)
    assert "written between tests by gw0" in said
    assert "LINE BETWEEN TESTS" in said
    assert "LINE OF THE TEST" in said  # pytest's own report
    assert "LINE OF THE END" not in said  # the output was reported before
