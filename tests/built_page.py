"""The workbench for tests that start a service: built anew if its sources have changed.

`make test` has built it before; this is for `pytest` alone.
"""

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WEB = Path(__file__).parents[1] / "web"
_PAGE = WEB.parent / "app" / "static" / "index.html"
_GENERATED = ("openapi.json", "schema.d.ts")


def require_packages() -> None:
    if not (WEB / "node_modules").is_dir():
        pytest.skip("the packages of the workbench are not installed: run `make web`")


def build_page() -> None:
    """Builds the page into `app/static`, where the service and the wheel take it from."""
    require_packages()
    with _one_process():
        if not _is_current():
            run_npm("run", "build", "--", "--logLevel", "warn")


def run_npm(*arguments: str) -> str:
    """Runs npm in `web/`; returns its output."""
    command = [str(WEB / "with-node"), "npm", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _is_current() -> bool:
    if not _PAGE.exists():
        return False
    built = _PAGE.stat().st_mtime
    return all(path.stat().st_mtime <= built for path in _sources())


def _sources() -> Iterator[Path]:
    yield from (path for path in WEB.iterdir() if path.is_file() and path.name not in _GENERATED)
    for folder in ("src", "public"):
        found = (path for path in (WEB / folder).rglob("*") if path.is_file())
        yield from (path for path in found if path.name not in _GENERATED)


@contextmanager
def _one_process() -> Iterator[None]:
    """Test processes run at the same time, and the build empties its folder."""
    lock = WEB / "node_modules" / ".build.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
