"""Search of a dataset by a vector, with and without an index and a cluster."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import delete

from app.core.clusterings.search import SearchSpace, open_space, search_space, stored_vector
from app.core.datasets import features
from app.core.datasets.features import index_key, open_features
from app.core.platform.errors import FeaturesMissing, InvalidRequest, NotFound
from app.core.platform.tables import EXCLUDED, Assignment, Clustering, Dataset
from app.core.runtime import Runtime
from temi.neighbors.index import build_index
from tests.core.clustering_rows import FOLDER, TENANT, Stored, save_features, sha256, store

COUNT = 300
PLACES = [0 if position % 3 else 1 for position in range(COUNT)]


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    """Image i points to i / 2 degrees; those with a multiple of three are in cluster 1."""
    found = store(any_runtime, PLACES, n_clusters=3)
    radians = np.deg2rad(np.arange(COUNT) / 2)
    rows = np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)
    save_features(any_runtime, rows, list(range(COUNT)))
    return found


def _open(
    runtime: Runtime, stored: Stored, clustering: str | None = None, cluster: int | None = None
) -> SearchSpace:
    with runtime.db.read() as session:
        return open_space(session, TENANT, stored.dataset_id, clustering, cluster)


def _search(
    runtime: Runtime, stored: Stored, position: int, limit: int, cluster: int | None = None
) -> list[int]:
    """The positions of what is found near the image at this position."""
    space = _open(runtime, stored, cluster=cluster)
    vector = stored_vector(runtime.storage, space, sha256(position))
    assert vector is not None
    found = search_space(
        runtime.db, runtime.storage, space, vector, limit, without=stored.images[position]
    )
    assert all(one.cluster_id == PLACES[stored.images.index(one.image_id)] for one in found)
    assert all(one.label == f"cluster {one.cluster_id}" for one in found)
    return [stored.images.index(one.image_id) for one in found]


def test_most_similar_first(any_runtime: Runtime, stored: Stored) -> None:
    assert _search(any_runtime, stored, 0, 3) == [1, 2, 3]
    assert _search(any_runtime, stored, 10, 4) == [9, 11, 8, 12]
    assert len(_search(any_runtime, stored, 10, 500)) == COUNT - 1


def test_only_images_of_a_cluster(any_runtime: Runtime, stored: Stored) -> None:
    assert _search(any_runtime, stored, 10, 4, cluster=1) == [9, 12, 6, 15]
    assert _search(any_runtime, stored, 9, 2, cluster=1) == [6, 12]
    assert _search(any_runtime, stored, 9, 2, cluster=2) == []  # it has no images
    with pytest.raises(NotFound):
        _open(any_runtime, stored, cluster=3)


def test_an_index_finds_the_same(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [_search(any_runtime, stored, row, 20) for row in range(0, COUNT, 50)]
    monkeypatch.setattr(features, "INDEX_ROWS", 100)
    assert open_features(any_runtime.storage, FOLDER).index is None  # not built yet
    with any_runtime.storage.writing(index_key(FOLDER)) as file:
        build_index(open_features(any_runtime.storage, FOLDER).features, Path(file.name))
    assert open_features(any_runtime.storage, FOLDER).index is not None
    assert [_search(any_runtime, stored, row, 20) for row in range(0, COUNT, 50)] == expected


def test_excluded_images_have_no_cluster(any_runtime: Runtime, stored: Stored) -> None:
    with any_runtime.db.write() as session:
        key = (stored.clustering_id, stored.images[1])
        session.get_one(Assignment, key).cluster_id = EXCLUDED
    space = _open(any_runtime, stored)
    vector = np.array([1, 0], dtype=np.float32)
    found = search_space(any_runtime.db, any_runtime.storage, space, vector, 2)
    assert [(one.cluster_id, one.label) for one in found] == [(1, "cluster 1"), (None, None)]


def test_the_space_of_a_dataset(any_runtime: Runtime, stored: Stored) -> None:
    newest = _open(any_runtime, stored)
    assert newest.clustering_id == stored.clustering_id
    assert newest.model == ("m", 1)
    other = store(any_runtime, [0])
    with pytest.raises(InvalidRequest, match="another dataset"):
        _open(any_runtime, stored, other.clustering_id)
    with pytest.raises(NotFound):
        _open(any_runtime, stored, "cl_unknown")
    with any_runtime.db.write() as session:
        session.get_one(Dataset, stored.dataset_id).current_clustering_id = None
        session.execute(delete(Clustering).where(Clustering.id == stored.clustering_id))
    with pytest.raises(FeaturesMissing, match="Cluster it first"):
        _open(any_runtime, stored)
    with pytest.raises(InvalidRequest, match="no clustering yet"):
        _open(any_runtime, stored, cluster=0)


def test_vectors_of_another_backbone(any_runtime: Runtime, stored: Stored) -> None:
    space = _open(any_runtime, stored)
    assert stored_vector(any_runtime.storage, space, sha256(COUNT)) is None
    with pytest.raises(FeaturesMissing, match="have 2 numbers"):
        search_space(any_runtime.db, any_runtime.storage, space, np.ones(3, np.float32), 5)
