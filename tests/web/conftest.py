"""A real service with a real clustering, and a browser.

A test process starts one service and makes one clustering; a test that edits gets it unedited and
leaves it so. Both end with the last test of this folder: others look at this process's children.
"""

import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from temi_client import ApiError, TemiClient
from tests.built_page import WEB, build_page
from tests.e2e.conftest import Service, running
from tests.web.browser import Visits, chromium

_DRAWINGS = WEB.parent / "demo" / "clipart.zip"
_CLASSES = 5
_OF_EACH = 16
MODEL = "drawings"


@dataclass(frozen=True)
class Made:
    """What the service has: a dataset of drawings, its clustering and its model."""

    dataset_id: str
    clustering_id: str
    job_id: str
    model: str = MODEL

    def view(self, rest: str = "") -> str:
        return f"#/clusterings/{self.clustering_id}{rest}"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Ends with the last test of this folder: while Playwright runs, its event loop counts as the
    running one of this thread, and tests of other folders could not start theirs."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with some of the demo's drawings, in a folder for each class."""
    folder = tmp_path_factory.mktemp("web") / "drawings"
    write_drawings(folder)
    return folder


def write_drawings(folder: Path, classes: int = _CLASSES, of_each: int = _OF_EACH) -> None:
    with zipfile.ZipFile(_DRAWINGS) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        kinds = sorted({name.split("/")[0] for name in names})
        for kind in kinds[:classes]:
            of_kind = [name for name in names if name.startswith(f"{kind}/")]
            archive.extractall(folder, of_kind[:of_each])


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    build_page()
    with running(tmp_path_factory.mktemp("web-service") / "data") as found:
        yield found


@pytest.fixture(scope="package")
def api(service: Service) -> Iterator[TemiClient]:
    with service.client() as client:
        yield client


@pytest.fixture(scope="package")
def made(api: TemiClient, drawings: Path) -> Made:
    return make_clustering(api, drawings)


def make_clustering(api: TemiClient, folder: Path, groups: int = 6, **options: Any) -> Made:
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*.*")):
            file.write(path, path.relative_to(folder))
    read = api.wait(api.upload_dataset(archive, name=folder.name).id)
    assert read.dataset_id is not None
    trained: dict[str, Any] = {"model_name": MODEL, "n_heads": 8, "steps": 200, **options}
    job = api.wait(api.cluster(read.dataset_id, groups, **trained).id)
    assert job.result is not None
    return Made(read.dataset_id, job.result["clustering_id"], job.id)


@pytest.fixture
def edited(api: TemiClient, made: Made) -> Iterator[Made]:
    """The clustering for a test that edits it: all that the test has done is undone."""
    yield made
    with suppress(ApiError):  # nothing is left to undo
        while True:
            api.undo(made.clustering_id)


@pytest.fixture
def visits(browser: Browser, service: Service) -> Iterator[Visits]:
    """Opens pages; they may not break the policy, write errors or ask other hosts."""
    visits = Visits(browser, service.url)
    yield visits
    visits.close()
