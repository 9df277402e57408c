"""A service that runs as long as a command."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from app.cli.errors import FAILED, print_error
from app.cli.output import notices
from app.core.platform.processes import kill_with_parent
from temi_client import ApiError, ServiceUnreachable, TemiClient

_STOP_SECONDS = 20.0
_LOG_LINES = 30


@contextmanager
def embedded_service(port: int, api_key: str | None, start_seconds: float) -> Iterator[str]:
    """Starts `temi serve`, yields its URL when it is ready, and stops it at the end."""
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="temi-demo-") as folder:
        log = Path(folder) / "serve.log"
        with log.open("wb") as output, _sigterm_as_exit():
            process = subprocess.Popen(
                [sys.executable, "-m", "app.cli.main", "serve", "--port", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Its own process group: Ctrl-C reaches only this process, which stops the group.
                start_new_session=True,
                preexec_fn=kill_with_parent(),
            )
            try:
                with notices.status("Starting the service"):
                    _wait_until_ready(process, url, api_key, log, start_seconds)
                yield url
            finally:
                _stop(process)


def free_port(preferred: int) -> int:
    """Returns the preferred port if it is free, else any free port."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no port is free on 127.0.0.1")


def _wait_until_ready(
    process: "subprocess.Popen[bytes]", url: str, api_key: str | None, log: Path, seconds: float
) -> None:
    deadline = time.monotonic() + seconds
    with TemiClient(url, api_key, timeout=5.0) as client:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                _fail(f"The service ended with exit code {process.returncode}.", log)
            if is_ready(client):
                return
            time.sleep(0.25)
    _fail(f"The service was not ready after {seconds:.0f} s.", log)


def is_ready(client: TemiClient) -> bool:
    try:
        return client.ready().ready
    except (ServiceUnreachable, ApiError):
        return False


def _fail(message: str, log: Path) -> None:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    print_error(f"{message} The end of its log:")
    for line in lines:
        notices.print(f"  {line}", markup=False, soft_wrap=True)
    raise typer.Exit(FAILED)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    """Turns SIGTERM into SystemExit, so that the embedded service is stopped as well."""

    def on_sigterm(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, on_sigterm)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
