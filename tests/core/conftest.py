"""Rows for the tests of core."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.datasets.rows import create_dataset
from app.core.jobs.lifecycle import create_job
from app.core.platform.ids import new_id
from app.core.platform.tables import Dataset, Image, Job
from app.core.runtime import Runtime
from tests.core.datasets.archives.archive_files import Write

MakeJob = Callable[..., Job]
MakeDataset = Callable[..., Dataset]


@pytest.fixture
def make_dataset(any_runtime: Runtime) -> MakeDataset:
    """A dataset with the given image hashes, at positions 0, 1, ..."""

    def make(
        hashes: list[str] | None = None, *, names: str = "image", tenant: str = "t"
    ) -> Dataset:
        with any_runtime.db.write() as session:
            dataset = create_dataset(session, tenant=tenant, name="d")
            dataset.end_position = dataset.image_count = len(hashes or [])
            for position, sha256 in enumerate(hashes or []):
                session.add(
                    Image(
                        id=new_id("img"),
                        dataset_id=dataset.id,
                        position=position,
                        name=f"{names} {position}",
                        sha256=sha256,
                        width=1,
                        height=1,
                        format="PNG",
                        bytes=1,
                    )
                )
        return dataset

    return make


@pytest.fixture
def make_job(any_runtime: Runtime, make_dataset: MakeDataset) -> MakeJob:
    def make(kind: str = "cluster", *, tenant: str = "t", precision: str = "float32") -> Job:
        dataset = make_dataset(["00" * 32], tenant=tenant)
        with any_runtime.db.write() as session:
            if kind == "ingest":  # its image is still on its way
                dataset = session.get_one(Dataset, dataset.id)
                dataset.end_position = dataset.image_count = 0
            config = {"source": {}, "precision": precision}
            return create_job(session, tenant=tenant, kind=kind, dataset=dataset, config=config)

    return make


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(data: bytes) -> Path:
        path = tmp_path / "upload"
        path.write_bytes(data)
        return path

    return write
