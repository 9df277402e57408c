"""`temi api` runs the server with limits, in one process and in several."""

import os
import signal
import subprocess
import sys

import pytest

from app.core.platform.settings import Settings
from tests.http_server import RawClient, status_of
from tests.servers import free_port
from tests.waiting import LONG_SECONDS, wait_until


def _is_up(client: RawClient, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None
    try:
        return status_of(client.get("/livez")) == 200
    except ConnectionError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_enforces_the_limits(settings: Settings, workers: int) -> None:
    client = RawClient(free_port())
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli.main", "api", "--port", str(client.port)],
        env=os.environ
        | {
            "TEMI_DATA_DIR": str(settings.data_dir),
            "TEMI_API_WORKERS": str(workers),
            "TEMI_HEAD_SECONDS": "1",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _is_up(client, process))
        for _ in range(workers * 3):  # whichever process answers
            long = client.ask(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
            assert status_of(long) == 431
            assert status_of(client.ask(b"GET /livez")) == 408
    finally:
        client.close()
        process.terminate()
        assert process.wait(LONG_SECONDS) in (0, -signal.SIGTERM)


def test_the_api_starts_without_what_few_requests_need() -> None:
    """Each of these takes up to a second of a processor."""
    code = """
import sys
import app.main
large = ("torch", "celery", "alembic", "psycopg", "pyarrow", "scipy", "sklearn", "matplotlib")
assert not [name for name in large if name in sys.modules]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
