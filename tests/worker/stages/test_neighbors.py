import numpy as np
import pytest

from app.core.runtime import Runtime
from temi.neighbors.search import mine_neighbors
from tests.worker.conftest import Claimed
from tests.worker.tiny import add_dataset, add_job
from worker.context import JobContext
from worker.stages import neighbors as mining
from worker.stages.neighbors import NeighborFiles, mine_features

FEATURES_KEY = "embeddings/test/features.npy"
FEATURES = np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32)


@pytest.fixture
def context(runtime: Runtime, claimed: Claimed) -> JobContext:
    return claimed(runtime, add_job(runtime, add_dataset(runtime, [])).id)


@pytest.fixture
def files(runtime: Runtime) -> NeighborFiles:
    return NeighborFiles(runtime.storage, "embeddings/test/neighbors", 3, FEATURES_KEY)


def test_mining_stores_neighbors_and_the_method(context: JobContext, files: NeighborFiles) -> None:
    mine_features(context, FEATURES, files)

    np.testing.assert_array_equal(files.ids(), mine_neighbors(FEATURES, 3).ids)
    assert files.summary() == {
        "k": 3,
        "method": "exact",
        "recall": 1.0,
        "n_cells": None,
        "n_probes": None,
    }


def test_a_crash_before_the_summary_leaves_the_stage_undone(
    context: JobContext, files: NeighborFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mining, "save_json", crash)
    with pytest.raises(KeyboardInterrupt):
        mine_features(context, FEATURES, files)
    assert not files.done

    monkeypatch.undo()
    mine_features(context, FEATURES, files)
    assert files.ids().shape == (12, 3)
