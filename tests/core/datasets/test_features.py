"""Stored features: found by hash, compared by cosines, read by few threads at once."""

import threading

import numpy as np
import pytest

from app.core.datasets import features
from app.core.datasets.features import computing, open_features, to_hashes
from app.core.platform.errors import FeaturesMissing, QueueFull
from app.core.runtime import Runtime
from tests.core.clustering_rows import FOLDER, save_features, sha256
from tests.waiting import wait_until


def test_rows_are_found_by_hash(runtime: Runtime) -> None:
    save_features(runtime, np.eye(4, dtype=np.float32), [3, 1, 0, 1])
    stored = open_features(runtime.storage, FOLDER)
    wanted = to_hashes([sha256(position) for position in (0, 3, 9, 0)])
    assert stored.rows_of(wanted).tolist() == [2, 0, -1, 2]
    assert stored.rows_of(to_hashes([])).tolist() == []
    with pytest.raises(FeaturesMissing):
        stored.all_rows_of(wanted)


def test_cosines_are_those_of_a_slow_version(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "_CHUNK_ROWS", 7)
    rows = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    rows[4] = 0
    save_features(runtime, rows, list(range(50)))
    stored = open_features(runtime.storage, FOLDER)
    found = stored.cosines(rows[:3])
    for i in range(3):
        for j in range(50):
            a, b = rows[i].astype(float), rows[j].astype(float)
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            assert found[i, j] == round(a @ b / lengths * 1e6 if lengths else 0.0)
    some = np.array([9, 2, 30])
    assert (stored.cosines(rows[:3], some) == found[:, some]).all()


@pytest.mark.parametrize("damage", ["features", "hashes", "shape"])
def test_files_that_do_not_fit_are_missing_features(runtime: Runtime, damage: str) -> None:
    save_features(runtime, np.eye(4, dtype=np.float32), [0, 1, 2])
    if damage != "shape":
        runtime.storage.write(f"{FOLDER}/{damage}.npy", b"no array")
    with pytest.raises(FeaturesMissing):
        open_features(runtime.storage, FOLDER)


def test_few_threads_compute_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    running, admitted = threading.BoundedSemaphore(1), threading.BoundedSemaphore(2)
    monkeypatch.setattr(features, "_running", running)
    monkeypatch.setattr(features, "_admitted", admitted)
    done: list[int] = []

    def wait_and_compute() -> None:
        with computing():
            done.append(1)

    with computing():
        waiting = threading.Thread(target=wait_and_compute)
        waiting.start()
        wait_until(lambda: admitted._value == 0, "the second waits")
        with pytest.raises(QueueFull), computing():
            pass
        assert not done
    waiting.join()
    assert done
