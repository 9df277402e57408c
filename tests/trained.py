"""A small model that is trained once per test process, and its fixtures."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.core.jobs.lifecycle import Progress
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from tests.api.conftest import COLORS, Json, upload, work_on
from tests.conftest import running_api
from tests.images import jpeg_bytes
from tests.waiting import PATIENT

EACH = 8  # images of each color


@dataclass(frozen=True)
class TrainedData:
    folder: Path
    job: Json
    reports: list[Progress]


@pytest.fixture(scope="session")
def trained_data(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> TrainedData:
    """A data folder with a dataset of three colors and a model; use a copy."""
    folder = tmp_path_factory.mktemp("trained-data")
    shutil.copy(sqlite_template, folder / "temi.db")
    settings = _settings(folder)
    runtime = Runtime(settings)
    with running_api(settings) as client:
        job = upload(client, _images(), name="colors", labels_from="folder")
        work_on(runtime, job["id"])
        body = {"dataset_id": job["dataset_id"], "n_clusters": 3, "n_heads": 4, "steps": 60}
        cluster = client.post("/v1/jobs", json=body).json()
        reports = work_on(runtime, cluster["id"])
        ended = client.get(f"/v1/jobs/{cluster['id']}").json()
    runtime.db.dispose()
    return TrainedData(folder, ended, reports)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, trained_data: TrainedData) -> Iterator[Json]:
    """An API in this process with a model of three colors; its data is shared by all tests."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(trained_data.folder, folder, dirs_exist_ok=True)
    settings = _settings(folder)
    runtime = Runtime(settings)
    with running_api(settings) as client:
        known = {"job": trained_data.job, "reports": trained_data.reports}
        yield {"client": client, "runtime": runtime, **known}
    runtime.db.dispose()


def live_copy(trained_data: TrainedData, folder: Path) -> Settings:
    """The settings of a service with a copy of the data."""
    shutil.copytree(trained_data.folder, folder, dirs_exist_ok=True)
    return _settings(folder)


def _settings(folder: Path) -> Settings:
    return Settings(
        _env_file=None,
        data_dir=folder,
        torch_threads=1,
        max_predict_files=10,
        max_predict_features=50,
        **PATIENT,
    )


def _images() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    files = {}
    for number in range(EACH):
        for name, color in COLORS.items():
            shade = Image.new("RGB", (1, 1), color).getpixel((0, 0))
            assert isinstance(shade, tuple)
            near = tuple(int(np.clip(c + rng.integers(-20, 20), 0, 255)) for c in shade)
            files[f"{name}/{number}.jpg"] = jpeg_bytes(near, (32, 32))
    return files
