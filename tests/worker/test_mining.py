import numpy as np
import pytest

from app.core.runtime import Runtime
from temi.config import TrainConfig
from temi.neighbors import mine_neighbors
from tests.images import jpeg_bytes, zip_of
from tests.worker.conftest import AddIngest, Claimed
from worker import pipeline
from worker.artefacts import save_array
from worker.pipeline import ClusterJob, mine

FEATURES = np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32)


@pytest.fixture
def job(runtime: Runtime, add_ingest: AddIngest, claimed: Claimed) -> ClusterJob:
    """A job whose features are there; its name and settings need no backbone."""
    row = add_ingest(runtime, zip_of({"a.jpg": jpeg_bytes()}))
    job = ClusterJob(claimed(runtime, row.id))
    job.__dict__["embedding"] = "embeddings/test"
    job.__dict__["config"] = TrainConfig(n_clusters=2, n_neighbors=3)
    save_array(job.storage, job.features_key, FEATURES)
    return job


def test_mining_stores_neighbors_and_how_they_were_found(job: ClusterJob) -> None:
    mine(job)

    np.testing.assert_array_equal(job.neighbors(), mine_neighbors(FEATURES, 3).ids)
    assert job.mining() == {
        "k": 3,
        "method": "exact",
        "recall": 1.0,
        "n_cells": None,
        "n_probes": None,
    }


def test_a_crash_before_the_summary_leaves_the_stage_undone(
    job: ClusterJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "save_json", crash)
    with pytest.raises(KeyboardInterrupt):
        mine(job)
    assert not job.storage.exists(job.mining_key)

    monkeypatch.undo()
    mine(job)
    assert job.neighbors().shape == (12, 3)
