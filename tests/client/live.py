"""The real API on a real port, for tests of the client and the command."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from sqlalchemy import select

from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from app.main import create_app
from app.server import make_config
from temi_client import TemiClient
from tests.api.conftest import store_clustering, work_on
from tests.conftest import MakeSettings, running_api
from tests.images import ZIP, jpeg_bytes, png_bytes, zip_of
from tests.waiting import LONG_SECONDS, wait_until

FILES = {
    "cats/a.jpg": jpeg_bytes("red", (40, 20)),
    "cats/b.png": png_bytes("green"),
    "bad/text.jpg": b"no image",
    "dogs/c.jpg": jpeg_bytes("blue"),
    "dogs/d.jpg": jpeg_bytes("white"),
}
Route = tuple[str, str]


@dataclass
class Live:
    """A running service; `routes` are the routes that were requested."""

    url: str
    runtime: Runtime
    routes: set[Route]
    openapi: Callable[[], dict[str, Any]]

    def client(self, **options: Any) -> TemiClient:
        return TemiClient(self.url, **{"retries": 0, "timeout": LONG_SECONDS, **options})

    def work(self, job_id: str) -> None:
        """Runs a job in this process, as a worker would."""
        work_on(self.runtime, job_id)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Runs all queued jobs in a thread."""
        stop = threading.Event()
        thread = threading.Thread(target=self._work_until, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _work_until(self, stop: threading.Event) -> None:
        while not stop.wait(0.02):
            with self.runtime.db.read() as session:
                waiting = session.scalars(select(Job.id).where(Job.status == "queued")).all()
            for job_id in waiting:
                self.work(job_id)


@contextmanager
def running_live(settings: Settings) -> Iterator[Live]:
    app, runtime, routes = create_app(settings), Runtime(settings), set[Route]()

    async def recording(scope: Any, receive: Any, send: Any) -> None:
        async def recording_send(message: Any) -> None:
            if message["type"] == "http.response.start":  # before the client continues
                routes.add((scope["method"], getattr(scope.get("route"), "path", "unmatched")))
            await send(message)

        await app(scope, receive, recording_send)

    config = make_config(settings, recording, port=0, log_config=None, lifespan="on")
    server, before = uvicorn.Server(config), tempfile.tempdir
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(
            lambda: server.started or not thread.is_alive(), "the server starts", pause=0.005
        )
        assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Live(f"http://127.0.0.1:{port}", runtime, routes, app.openapi)
    finally:
        server.should_exit = True
        thread.join()
        tempfile.tempdir = before  # the API has changed it
        runtime.db.dispose()


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """A data folder with one dataset (four images, one unreadable file) and a clustering of it."""
    folder = tmp_path_factory.mktemp("collection")
    shutil.copy(sqlite_template, folder / "temi.db")
    settings = Settings(_env_file=None, data_dir=folder)
    runtime = Runtime(settings)
    with running_api(settings) as api:
        params = {"name": "Cats & Dogs", "labels_from": "folder"}
        job = api.post("/v1/datasets", content=zip_of(FILES), headers=ZIP, params=params).json()
        work_on(runtime, job["id"])
    store_clustering(runtime, job["dataset_id"])
    _end_jobs(runtime)
    runtime.db.dispose()
    return folder


def _end_jobs(runtime: Runtime) -> None:
    """Ends the job of the stored clustering: the dataset cannot change while a job is queued."""
    with runtime.db.write() as session:
        for job in session.scalars(select(Job).where(Job.status == "queued")):
            job.status = "succeeded"


@pytest.fixture
def live(make_settings: MakeSettings, tmp_path: Path, collection: Path) -> Iterator[Live]:
    """A service with a copy of the `collection`."""
    settings = make_settings(source_folders=(tmp_path,))
    shutil.copytree(collection, settings.data_dir, dirs_exist_ok=True)
    with running_live(settings) as running:
        yield running
