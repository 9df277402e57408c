"""The whole service as its users run it: `temi serve` in a process tree of its own."""

import io
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image, ImageDraw

from temi_client import TemiClient

SHAPES = ("circle", "square", "stripes")


@dataclass
class Service:
    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def client(self) -> TemiClient:
        return TemiClient(self.url)

    def child(self, *words: str) -> psutil.Process:
        """The process of the tree whose command line has these words."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for process in psutil.Process(self.process.pid).children(recursive=True):
                line = " ".join(_command_line(process))
                if all(word in line for word in words):
                    return process
            time.sleep(0.05)
        raise AssertionError(f"no process with {words}:\n{self.log.read_text()}")

    def worker(self) -> psutil.Process:
        return self.child("celery", "worker.main")

    def api(self) -> psutil.Process:
        return self.child("uvicorn")


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def running(data_dir: Path, **settings: str) -> Iterator[Service]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "TEMI_DATA_DIR": str(data_dir),
        "TEMI_PORT": str(port),
        "TEMI_LEASE_SECONDS": "6",
        "TEMI_SELF_KILL_SECONDS": "4",
        "TEMI_HEARTBEAT_SECONDS": "1",
        "TEMI_SWEEP_SECONDS": "0.5",
        "TEMI_CHECKPOINT_SECONDS": "0.5",
        **settings,
    }
    log = data_dir.with_suffix(".log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli.main", "serve"], env=environment, stdout=out, stderr=out
        )
    service = Service(process, f"http://127.0.0.1:{port}", log)
    try:
        wait_until_ready(service)
        yield service
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        finally:
            process.kill()


def wait_until_ready(service: Service) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with TemiClient(service.url, retries=1) as client:
                if client.ready().ready:
                    return
        except Exception:  # noqa: BLE001 - not up yet, whatever it says
            time.sleep(0.2)
    raise AssertionError(f"not ready:\n{service.log.read_text()}")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "data") as found:
        yield found


@pytest.fixture
def start_service(tmp_path: Path) -> Callable[..., object]:
    """For tests that need a service of their own, with other settings."""
    return lambda **settings: running(tmp_path / "data", **settings)


def drawing(shape: str, seed: int, size: int = 96) -> bytes:
    """A picture of a shape in random colour and place: three groups that anyone can tell apart."""
    rng = np.random.default_rng(seed)
    background = tuple(int(v) for v in rng.integers(200, 256, 3))
    color = tuple(int(v) for v in rng.integers(0, 120, 3))
    image = Image.new("RGB", (size, size), background)
    draw = ImageDraw.Draw(image)
    x, y = (int(v) for v in rng.integers(5, 30, 2))
    box = (x, y, x + 55, y + 55)
    if shape == "circle":
        draw.ellipse(box, fill=color)
    elif shape == "square":
        draw.rectangle(box, outline=color, width=6)
    else:
        for offset in range(0, size, 12):
            draw.line((offset, 0, offset, size), fill=color, width=4)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return out.getvalue()


@pytest.fixture(scope="session")
def shapes_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty drawings of each shape, in folders."""
    path = tmp_path_factory.mktemp("shapes") / "shapes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for kind, shape in enumerate(SHAPES):
            for number in range(30):
                archive.writestr(f"{shape}/{number:02d}.jpg", drawing(shape, 1000 * kind + number))
    return path


@pytest.fixture(scope="session")
def new_drawings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One drawing of each shape that is not in the zip."""
    folder = tmp_path_factory.mktemp("new")
    paths = {}
    for kind, shape in enumerate(SHAPES):
        paths[shape] = folder / f"{shape}.jpg"
        paths[shape].write_bytes(drawing(shape, 50_000 + kind))
    return paths
