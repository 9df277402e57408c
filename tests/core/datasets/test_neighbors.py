"""The most similar images of a dataset, by the features that are stored."""

import numpy as np
import numpy.typing as npt
import pytest
from sqlalchemy import delete

from app.core.datasets import neighbors
from app.core.datasets.embeddings import add_embedding
from app.core.datasets.neighbors import image_neighbors
from app.core.platform.errors import FeaturesMissing, NotFound
from app.core.platform.tables import Dataset, Image
from app.core.runtime import Runtime
from tests.core.clustering_rows import FOLDER, TENANT, Stored, save_features, sha256, store


def angles(*degrees: float) -> npt.NDArray[np.float32]:
    radians = np.deg2rad(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    """Eight images; the features of image i point to 10 * i degrees."""
    found = store(any_runtime, [0] * 8)
    save_features(any_runtime, angles(*range(0, 80, 10)), list(range(8)))
    _register(any_runtime, found, FOLDER)
    return found


def _register(runtime: Runtime, stored: Stored, folder: str) -> None:
    with runtime.db.write() as session:
        add_embedding(
            session,
            dataset_id=stored.dataset_id,
            backbone_key=folder,
            fingerprint="f",
            folder=folder,
            rows=8,
        )


def near(runtime: Runtime, stored: Stored, image: int, limit: int = 3) -> list[int]:
    """The positions of the nearest images."""
    found = image_neighbors(runtime.db, runtime.storage, TENANT, stored.images[image], limit)
    return [stored.images.index(one.image_id) for one in found]


def test_equally_similar_images_are_in_the_order_of_their_ids(
    any_runtime: Runtime, stored: Stored
) -> None:
    assert near(any_runtime, stored, 0) == [1, 2, 3]
    assert near(any_runtime, stored, 4, 5) == [3, 5, 2, 6, 1]
    assert near(any_runtime, stored, 0, 100) == [1, 2, 3, 4, 5, 6, 7]
    found = image_neighbors(any_runtime.db, any_runtime.storage, TENANT, stored.images[0], 1)
    assert found == [(stored.images[1], "1.png", 0.984808)]


def test_rows_of_deleted_images_are_skipped(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbors, "_MIN_LOOKUP", 1)
    with any_runtime.db.write() as session:
        session.execute(delete(Image).where(Image.id.in_(stored.images[1:5])))
    assert near(any_runtime, stored, 0, 1) == [5]
    assert near(any_runtime, stored, 0, 2) == [5, 6]


def test_images_with_the_same_bytes(any_runtime: Runtime, stored: Stored) -> None:
    with any_runtime.db.write() as session:
        session.get_one(Image, stored.images[6]).sha256 = sha256(0)
    assert near(any_runtime, stored, 0, 2) == [6, 1]
    assert near(any_runtime, stored, 6, 2) == [0, 1]


def test_images_of_a_running_ingest_are_left_out(any_runtime: Runtime, stored: Stored) -> None:
    with any_runtime.db.write() as session:
        session.get_one(Dataset, stored.dataset_id).end_position = 2
    assert near(any_runtime, stored, 0) == [1]
    with pytest.raises(NotFound):
        near(any_runtime, stored, 3)


def test_the_current_clustering_chooses_the_features(any_runtime: Runtime, stored: Stored) -> None:
    _register(any_runtime, stored, "embeddings/newer")
    save_features(any_runtime, angles(0, 70), [0, 7], "embeddings/newer")
    assert near(any_runtime, stored, 0) == [7]
    assert near(any_runtime, stored, 1) == [0, 2, 3]  # the newer features lack this image
    with any_runtime.db.write() as session:
        dataset = session.get_one(Dataset, stored.dataset_id)
        dataset.current_clustering_id = stored.clustering_id
    assert near(any_runtime, stored, 0) == [1, 2, 3]


def test_missing_features(any_runtime: Runtime, stored: Stored) -> None:
    any_runtime.storage.delete(f"{FOLDER}/features.npy")
    with pytest.raises(FeaturesMissing, match=stored.images[0]):
        near(any_runtime, stored, 0)
