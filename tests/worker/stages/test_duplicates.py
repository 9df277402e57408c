import io

import numpy as np
import pytest
from PIL import Image as PillowImage
from sqlalchemy import select

from app.core.platform.tables import Duplicate, Image
from app.core.runtime import Runtime
from tests.worker.conftest import Claimed
from tests.worker.job_steps import PICTURES, assignments, cluster_job, log_of, reload
from tests.worker.tiny import add_dataset, append
from worker.jobs.cluster import run_cluster
from worker.stages.duplicates import NEAR_COSINE, find_near, first_rows


def brighter(data: bytes) -> bytes:
    """Other bytes that look the same."""
    out = io.BytesIO()
    with PillowImage.open(io.BytesIO(data)) as image:
        image.point(lambda value: min(255, value + 1)).save(out, "PNG")
    return out.getvalue()


def listed(runtime: Runtime) -> dict[int, int]:
    """Position of each near duplicate -> position of its original."""
    with runtime.db.read() as session:
        position = {image.id: image.position for image in session.scalars(select(Image))}
        rows = session.scalars(select(Duplicate).where(Duplicate.kind == "near")).all()
    assert all(NEAR_COSINE <= row.similarity <= 1 for row in rows)
    return {position[row.image_id]: position[row.original_id] for row in rows}


def test_groups_are_connected_components_led_by_their_first_row() -> None:
    angles = np.deg2rad([0, 90, 10, 180, 20, 90, 200, 180])  # cos 10 = 0.985, cos 20 = 0.94
    features = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    neighbors = np.array([[2, 4], [5, 4], [0, 4], [7, 6], [2, 0], [1, 4], [3, 7], [3, 6]])
    first = np.array([0, 1, 2, 3, 4, 1, 6, 3])  # 5 and 7 have the bytes of 1 and 3

    near = find_near(features, neighbors, None, first)

    assert near.row.tolist() == [2, 4]
    assert near.original.tolist() == [0, 0]
    np.testing.assert_allclose(near.similarity, np.cos(angles[[2, 4]]), atol=1e-6)


def test_neighbors_may_be_of_some_rows_only() -> None:
    features = np.eye(4, dtype=np.float32)[[0, 1, 0, 2, 1]]
    rows = np.array([1, 2, 4])  # numbered 0, 1, 2 in the neighbors

    near = find_near(features, np.array([[2], [0], [0]]), rows, np.arange(5))

    assert (near.row.tolist(), near.original.tolist()) == ([4], [1])


def test_first_rows() -> None:
    hashes = np.zeros((4, 32), dtype=np.uint8)
    hashes[1, 31] = hashes[3, 31] = 7  # the last byte counts, zeros before it or not
    hashes[2, 0] = 7
    assert first_rows(hashes).tolist() == [0, 1, 2, 1]


@pytest.mark.usefixtures("tiny")
def test_every_job_replaces_the_near_duplicates(any_runtime: Runtime, claimed: Claimed) -> None:
    distinct = [PICTURES[0], PICTURES[10], PICTURES[20]]
    dataset_id = add_dataset(any_runtime, [*distinct, brighter(PICTURES[10]), PICTURES[10]])
    job = cluster_job(any_runtime, dataset_id, steps=2)
    run_cluster(claimed(any_runtime, job.id))
    assert listed(any_runtime) == {3: 1}
    assert "Near duplicates found: 1." in log_of(any_runtime, job)

    append(any_runtime, dataset_id, [brighter(PICTURES[20])])
    for mode in ("none", "exact", "near"):
        again = cluster_job(any_runtime, dataset_id, steps=2, exclude_duplicates=mode)
        run_cluster(claimed(any_runtime, again.id))
        assert listed(any_runtime) == {3: 1, 5: 2}
        assert len(assignments(any_runtime, again)) == 6


@pytest.mark.usefixtures("tiny")
def test_too_few_images_without_near_duplicates(runtime: Runtime, claimed: Claimed) -> None:
    pictures = [PICTURES[0], PICTURES[10], brighter(PICTURES[10])]
    job = cluster_job(runtime, add_dataset(runtime, pictures), exclude_duplicates="near")
    with pytest.raises(Exception, match="only 2 remain without"):
        run_cluster(claimed(runtime, job.id))
    assert set(reload(runtime, job).timings) == {"embed"}
