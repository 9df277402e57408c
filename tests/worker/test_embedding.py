from pathlib import Path

import numpy as np
import pytest

from app.core.storage import LocalStorage
from worker.artefacts import load_array, save_array
from worker.embedding import join_shards

KEYS = ["shard-0.npy", "shard-1.npy"]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    storage = LocalStorage(tmp_path)
    for number, key in enumerate(KEYS):
        save_array(storage, key, np.full((2, 3), number, dtype=np.float32))
    return storage


def test_shards_become_the_features_and_are_dropped(storage: LocalStorage) -> None:
    join_shards(storage, "features.npy", KEYS, 4)
    assert load_array(storage, "features.npy")[:, 0].tolist() == [0, 0, 1, 1]
    assert not any(storage.exists(key) for key in KEYS)


def test_a_job_that_was_overtaken_keeps_the_first_ones_features(storage: LocalStorage) -> None:
    join_shards(storage, "features.npy", KEYS, 4)
    save_array(storage, KEYS[1], np.ones((2, 3), dtype=np.float32))  # this one came too late
    join_shards(storage, "features.npy", KEYS, 4)
    assert load_array(storage, "features.npy").shape == (4, 3)
    assert not storage.exists(KEYS[1])


def test_a_shard_that_nobody_joined_is_missed(storage: LocalStorage) -> None:
    storage.delete(KEYS[0])
    with pytest.raises(FileNotFoundError):
        join_shards(storage, "features.npy", KEYS, 4)
