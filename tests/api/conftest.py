"""Datasets and clusterings for the API tests. Jobs run in the process of the test."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.clusterings.current import set_first
from app.core.clusterings.rows import Assigned
from app.core.jobs.lifecycle import Progress, claim, create_job, finish
from app.core.jobs.records import add_curve
from app.core.models.versions import add_version
from app.core.platform.ids import new_id
from app.core.platform.settings import Settings
from app.core.platform.tables import Clustering, Dataset, Image
from app.core.runtime import Runtime
from app.core.storage import Storage, open_storage
from app.core.storage.keys import embedding_folder
from app.core.storage.local import LocalStorage
from tests.conftest import MakeClient, running_api
from tests.images import ZIP, jpeg_bytes, png_bytes, zip_of
from tests.model_files import DIM, novelty_file, small_files, small_manifest, write_files
from worker.context import JobContext
from worker.stages.registration import add_clustering
from worker.supervision import job_process as child

Work = Callable[[str], list[Progress]]
MakeClustering = Callable[..., str]
Json = dict[str, Any]

COLORS = {"red": "#d02020", "green": "#20d020", "blue": "#2020d0"}


def upload(client: TestClient, files: dict[str, bytes], **params: str) -> Json:
    """Send a zip; returns the job."""
    answer = client.post("/v1/datasets", content=zip_of(files), headers=ZIP, params=params)
    assert answer.status_code == 202, answer.text
    job: Json = answer.json()
    return job


def work_on(runtime: Runtime, job_id: str) -> list[Progress]:
    """Claims a job and runs it like a job process; returns what it reported."""
    reports: list[Progress] = []
    with runtime.db.write() as session:
        job = claim(session, job_id, worker="test", lease_seconds=60)
    assert job is not None
    error = child._run(JobContext(runtime, job, job.fence, reports.append))
    if error is not None:
        with runtime.db.write() as session:
            finish(session, job_id, job.fence, status="failed", error=error)
    return reports


@pytest.fixture
def work(runtime: Runtime) -> Work:
    return lambda job_id: work_on(runtime, job_id)


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """A data folder with one dataset: four images in two folders, and two bad files."""
    folder = tmp_path_factory.mktemp("ingested")
    shutil.copy(sqlite_template, folder / "temi.db")
    settings = Settings(_env_file=None, data_dir=folder)
    files = {
        "cats/a.jpg": jpeg_bytes("red", (40, 20)),
        "cats/b.png": png_bytes("green"),
        "bad/text.jpg": b"no image",
        "dogs/c.jpg": jpeg_bytes("blue"),
        "dogs/d.jpg": jpeg_bytes("white"),
        "bad/doc.pdf": b"%PDF-1.7",
    }
    runtime = Runtime(settings)
    with running_api(settings) as client:
        job = upload(client, files, name="Cats & Dogs", labels_from="folder")
        work_on(runtime, job["id"])
    runtime.db.dispose()
    return folder


@pytest.fixture
def dataset(client: TestClient, settings: Settings, ingested: Path) -> Json:
    """The dataset of `ingested`, in a copy for this test."""
    shutil.copytree(ingested, settings.data_dir, dirs_exist_ok=True)
    if settings.storage_url:
        _copy(LocalStorage(ingested / "blobs"), open_storage(settings))
    found: Json = client.get("/v1/datasets").json()["data"][0]
    assert found["status"] == "ready"
    return found


def _copy(source: Storage, target: Storage) -> None:
    for file in source.list(""):
        target.write(file.key, source.read(file.key))


@pytest.fixture
def any_client(make_client: MakeClient, any_settings: Settings) -> TestClient:
    """Once for each database, on the same data as `any_runtime`."""
    return make_client(any_settings)


@pytest.fixture
def make_clustering(runtime: Runtime) -> MakeClustering:
    return lambda dataset_id, **options: store_clustering(runtime, dataset_id, **options)


def add_sweep_points(
    runtime: Runtime, job_id: str, values: Sequence[int], accuracy: float | None = None
) -> None:
    """The curve of a sweep over `n_clusters`, without any training."""
    with runtime.db.write() as session:
        for number, value in enumerate(values):
            figures = {
                "n_clusters": value,
                "occupancy_entropy": 1.0,
                "conditional_entropy": 0.05 * number,
                "mean_probability": 0.9,
                "size_kl": 0.1,
                "loss": -1.0,
                "accuracy": accuracy,
            }
            add_curve(session, job_id, number + 1, figures)


def store_clustering(
    runtime: Runtime,
    dataset_id: str,
    *,
    model: str = "cats-dogs",
    n_clusters: int = 3,
    one_in: int = 2,
    novelty: bool = False,
) -> str:
    """A finished clustering and its model version, without any training: image i is in cluster 0
    if i is a multiple of `one_in`, otherwise in cluster 1."""
    manifest = small_manifest(n_clusters)
    with runtime.db.write() as session:
        dataset = session.get_one(Dataset, dataset_id)
        images = session.scalars(
            select(Image).where(Image.dataset_id == dataset_id).order_by(Image.position)
        ).all()
        job = create_job(session, tenant=dataset.tenant, kind="cluster", dataset=dataset, config={})
        clustering_id = new_id("cl")
        version = add_version(
            session,
            tenant=dataset.tenant,
            name=model,
            job_id=job.id,
            clustering_id=clustering_id,
            folder=f"models/{job.id}",
            manifest=manifest,
            files=write_files(
                runtime.storage,
                f"models/{job.id}",
                small_files(manifest) | (novelty_file() if novelty else {}),
            ),
        ).version
        clustering = Clustering(
            id=clustering_id,
            tenant=dataset.tenant,
            job_id=job.id,
            dataset_id=dataset_id,
            embedding_folder=_save_features(runtime.storage, images),
            model_name=model,
            model_version=version,
            n_clusters=n_clusters,
            image_count=len(images),
            metrics={"temi": None, "kmeans": None},
        )
        sure = np.linspace(0.9, 0.5, len(images)).tolist()
        rows = (
            Assigned(image.id, min(row % one_in, 1), sure[row], sure[row] / 2, 1 - sure[row])
            for row, image in enumerate(images)
        )
        add_clustering(session, clustering, rows)
        set_first(session, clustering)
    return clustering_id


def _save_features(storage: Storage, images: Sequence[Image]) -> str:
    """The features of image i point in the direction of i * 10 degrees; returns their folder."""
    angles = np.deg2rad(10 * np.arange(len(images)))
    hashes = [list(bytes.fromhex(image.sha256)) for image in images]
    folder = embedding_folder(new_id("test"))
    features = np.zeros((len(images), DIM), dtype=np.float32)
    features[:, 0], features[:, 1] = np.cos(angles), np.sin(angles)
    for name, array in (("features", features), ("hashes", np.array(hashes, dtype=np.uint8))):
        with storage.writing(f"{folder}/{name}.npy") as file:
            np.save(file, array)
    return folder
