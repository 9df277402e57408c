"""Starts the whole service for benchmarks, with `temi serve`."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


@contextmanager
def running_service(folder: Path, **settings: object) -> Iterator[tuple[str, int]]:
    """Run `temi serve` on an empty data folder; yields its address and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"data_dir": folder / "data", "port": port, **settings}
    environment = os.environ | {f"TEMI_{name.upper()}": str(v) for name, v in settings.items()}
    command = [sys.executable, "-m", "app.cli.main", "serve"]
    with (folder / "serve.log").open("wb") as log:
        service = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while not _ready(url):
            if time.monotonic() > deadline:
                raise RuntimeError((folder / "serve.log").read_text())
            time.sleep(0.2)
        yield url, service.pid
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(30)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False
