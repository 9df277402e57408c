"""The whole service as its users run it: `temi serve` in a process tree of its own."""

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from PIL import Image, ImageDraw

from app.core.platform.db import Database
from temi_client import TemiClient
from tests.leases import LONG_LEASES, expire_lease
from tests.servers import free_port
from tests.waiting import LONG_SECONDS, PATIENT, as_variables, end, wait_until

SHAPES = ("circle", "square", "stripes")
SERVICE_VARIABLES = as_variables(
    {
        "heartbeat_seconds": 1,
        "maintenance_seconds": 0.5,
        "checkpoint_seconds": 0.5,
        "torch_threads": 1,  # other tests run on the other processors
        **LONG_LEASES,
        **PATIENT,
    }
)


@dataclass
class Service:
    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def client(self) -> TemiClient:
        return TemiClient(self.url, timeout=LONG_SECONDS)

    def http(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=LONG_SECONDS, **options)

    def child(self, *words: str) -> psutil.Process:
        """Returns the process of the tree whose command line has these words."""

        def found() -> psutil.Process | None:
            for process in psutil.Process(self.process.pid).children(recursive=True):
                line = " ".join(_command_line(process))
                if all(word in line for word in words):
                    return process
            return None

        process = wait_until(found, f"a process with {words}", details=self.log.read_text)
        assert process is not None
        return process

    @property
    def database(self) -> Path:
        """The service's own SQLite file."""
        return self.log.with_suffix("") / "temi.db"

    def expire_lease(self, job_id: str) -> None:
        """Expires the lease of a job whose worker is dead."""
        db = Database(f"sqlite:///{self.database}")
        expire_lease(db, job_id)
        db.dispose()

    def worker(self) -> psutil.Process:
        return self.child("-m worker")

    def api(self) -> psutil.Process:
        return self.child("app.server")


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def running(data_dir: Path, **settings: str) -> Iterator[Service]:
    port = free_port()
    environment = {
        **os.environ,
        **SERVICE_VARIABLES,
        "TEMI_DATA_DIR": str(data_dir),
        "TEMI_PORT": str(port),
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
        end(process)


def wait_until_ready(service: Service) -> None:
    def ready() -> bool:
        assert service.process.poll() is None, service.log.read_text()
        try:
            return httpx.get(f"{service.url}/readyz", timeout=LONG_SECONDS).status_code == 200
        except httpx.TransportError:  # not up yet
            return False

    wait_until(ready, "the service is ready", pause=0.1, details=service.log.read_text)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "data") as found:
        yield found


@pytest.fixture
def start_service(tmp_path: Path) -> Callable[..., object]:
    """Starts a service with other settings."""
    return lambda **settings: running(tmp_path / "data", **settings)


def drawing(shape: str, seed: int, size: int = 96) -> bytes:
    """Draws a shape in random color and place: three clearly different groups."""
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
    """A zip of thirty drawings of each shape, in folders."""
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
