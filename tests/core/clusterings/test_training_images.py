"""Nearest images of a training, for many vectors in bounded memory."""

import numpy as np
import pytest

from app.core.clusterings import training_images
from app.core.clusterings.training_images import nearest_training_images
from app.core.runtime import Runtime
from tests.core.clustering_rows import FOLDER, save_features, store


def test_many_vectors_in_small_parts(any_runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    stored = store(any_runtime, [0] * 9)
    save_features(any_runtime, rows, list(range(9)))
    ask = (any_runtime.db, any_runtime.storage, stored.clustering_id, rows, 3)
    whole = nearest_training_images(*ask)
    assert whole is not None
    assert [near[0].image_id for near in whole] == stored.images  # each is its own nearest
    assert {len(near) for near in whole} == {3}
    monkeypatch.setattr(training_images, "_COSINE_BYTES", 4 * 9 * 2)
    assert nearest_training_images(*ask) == whole


def test_what_is_gone_has_no_neighbors(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0] * 2)
    save_features(any_runtime, np.eye(2, dtype=np.float32), [0, 1])

    def found(clustering_id: str | None, dim: int) -> object:
        vectors = np.ones((1, dim), dtype=np.float32)
        return nearest_training_images(
            any_runtime.db, any_runtime.storage, clustering_id, vectors, 1
        )

    assert found(stored.clustering_id, 2) is not None
    assert found(None, 2) is found("cl_gone", 2) is None
    assert found(stored.clustering_id, 3) is None  # features of another backbone
    any_runtime.storage.delete(f"{FOLDER}/hashes.npy")
    assert found(stored.clustering_id, 2) is None
