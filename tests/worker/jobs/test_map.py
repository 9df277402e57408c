import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import select

from app.core.jobs.requests.map import MapCreate, map_key
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import Image, Job
from app.core.runtime import Runtime
from tests.worker.conftest import Claimed
from tests.worker.job_steps import LABELS, PICTURES, create, log_of, result_of
from tests.worker.tiny import add_dataset
from worker.jobs.map import run_map

pytestmark = pytest.mark.usefixtures("tiny")


def map_job(runtime: Runtime, dataset_id: str) -> Job:
    request = MapCreate(
        kind="map",
        dataset_id=dataset_id,
        backbone="tiny",
        precision="float32",
        perplexity=30.0,
        seed=0,
    )
    return create(runtime, request)


def table_of(runtime: Runtime, job: Job) -> pa.Table:
    with pa.ipc.open_file(runtime.storage.path(map_key(job.id))) as reader:
        return reader.read_all()


def test_a_map_has_every_image_once_near_similar_ones(runtime: Runtime, claimed: Claimed) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    job = map_job(runtime, dataset_id)

    run_map(claimed(runtime, job.id))

    url = f"/v1/jobs/{job.id}/map"
    assert result_of(runtime, job) == {"image_count": 30, "url": url, "backbone": "tiny"}
    table = table_of(runtime, job)
    with runtime.db.read() as session:
        images = session.scalars(select(Image.id).order_by(Image.position)).all()
    assert table["image_id"].to_pylist() == images
    assert table.schema.field("x").type == table.schema.field("y").type == pa.float32()
    points = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    assert np.abs(points).max() == 1.0
    distances = ((points[:, None] - points[None]) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    labels = np.array(LABELS)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.9
    assert "Perplexity 30 is too high for 30 images; 9.67 is used." in log_of(runtime, job)


def test_the_same_job_gives_the_same_map(runtime: Runtime, claimed: Claimed) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    jobs = [map_job(runtime, dataset_id) for _ in range(2)]
    for job in jobs:
        run_map(claimed(runtime, job.id))
    one, other = (table_of(runtime, job) for job in jobs)
    assert one.equals(other)


def test_three_images_are_enough_and_two_are_not(runtime: Runtime, claimed: Claimed) -> None:
    job = map_job(runtime, add_dataset(runtime, PICTURES[:3]))
    run_map(claimed(runtime, job.id))
    assert table_of(runtime, job).num_rows == 3
    with pytest.raises(InvalidRequest, match="at least 3"):
        map_job(runtime, add_dataset(runtime, PICTURES[:2]))
