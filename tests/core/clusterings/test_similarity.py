"""Similar clusters, and images by similarity, against a slow version; and what is kept."""

import numpy as np
import numpy.typing as npt
import pytest
from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.core.clusterings import members, similarity
from app.core.clusterings.members import Members
from app.core.clusterings.operations import Exclude, Merge, Move, Rename, Undo
from app.core.clusterings.rows import get_cluster, get_clustering
from app.core.clusterings.similarity import (
    Centers,
    SimilarImages,
    images_by_similarity,
    similar_clusters,
)
from app.core.datasets import features as stored_features
from app.core.platform.errors import FeaturesMissing, NotFound
from app.core.platform.tables import Clustering, Image
from app.core.runtime import Runtime
from tests.core.clustering_rows import FOLDER, TENANT, Stored, edit, save_features, store

EMPTY = Centers(  # of no clustering: it is not used
    revision=0,
    images=-1,
    folder=None,
    cluster_ids=np.empty(0, int),
    directions=np.empty((0, 6), "f4"),
)
PLACES = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 0, 5]  # cluster 4 is empty


@pytest.fixture
def features(any_runtime: Runtime) -> npt.NDArray[np.float32]:
    """In another order than the images, with rows of other images."""
    order = np.random.default_rng(1).permutation(20).tolist()
    rows = np.random.default_rng(2).normal(size=(20, 6)).astype(np.float32)
    save_features(any_runtime, rows, order)
    return rows[np.argsort(order)]


@pytest.fixture
def stored(any_runtime: Runtime, features: npt.NDArray[np.float32]) -> Stored:
    return store(any_runtime, PLACES, n_clusters=6)


def similar(runtime: Runtime, stored: Stored, cluster: int, limit: int = 50) -> dict[int, float]:
    found = similar_clusters(
        runtime.db, runtime.storage, TENANT, stored.clustering_id, cluster, limit
    )
    return {one.cluster_id: one.similarity for one in found.clusters}


def slow_similar(features: npt.NDArray[np.float32], cluster: int) -> dict[int, float]:
    exact = features.astype(float)
    units = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    means = {
        number: np.mean([units[i] for i, place in enumerate(PLACES) if place == number], axis=0)
        for number in set(PLACES)
    }
    own = means.pop(cluster)
    found = {
        number: round(float(mean @ own / np.linalg.norm(mean) / np.linalg.norm(own)), 6)
        for number, mean in means.items()
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


@pytest.mark.parametrize("small", [False, True])
def test_clusters_by_their_mean_features(
    any_runtime: Runtime,
    stored: Stored,
    features: npt.NDArray[np.float32],
    small: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if small:  # several chunks, and several groups of clusters
        monkeypatch.setattr(stored_features, "_CHUNK_ROWS", 2)
        monkeypatch.setattr(similarity, "_SUM_BYTES", 8 * 6 * 2)
    for cluster in (0, 3, 5):
        found = similar(any_runtime, stored, cluster)
        expected = slow_similar(features, cluster)
        assert list(found) == list(expected)
        assert found == pytest.approx(expected, abs=1.5e-6)
    assert list(similar(any_runtime, stored, 0, 2)) == list(slow_similar(features, 0))[:2]
    assert similar(any_runtime, stored, 4) == {}


def test_equally_similar_clusters_are_in_the_order_of_their_ids(any_runtime: Runtime) -> None:
    found = store(any_runtime, [0, 1, 2, 3])
    save_features(any_runtime, np.eye(4, dtype=np.float32), list(range(4)))
    assert similar(any_runtime, found, 2) == {0: 0.0, 1: 0.0, 3: 0.0}
    assert list(similar(any_runtime, found, 2)) == [0, 1, 3]


def test_edits_and_deletions_change_the_answer(any_runtime: Runtime, stored: Stored) -> None:
    before = similar(any_runtime, stored, 0)
    edit(any_runtime, stored, Move(image_ids=(stored.images[1],), cluster_id=0))
    moved = similar(any_runtime, stored, 0)
    assert moved != before
    edit(any_runtime, stored, Exclude(image_ids=(stored.images[0],)))
    excluded = similar(any_runtime, stored, 0)
    assert excluded not in (before, moved)
    with any_runtime.db.write() as session:
        session.execute(delete(Image).where(Image.id == stored.images[4]))
        session.get_one(Clustering, stored.clustering_id).image_count -= 1
    assert similar(any_runtime, stored, 0) != excluded
    edit(any_runtime, stored, Merge(cluster_ids=(1, 2)))
    assert len(similar(any_runtime, stored, 0)) == 3


def test_only_the_centers_of_changed_clusters_are_computed_again(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[set[int]] = []

    def read_members(session: Session, clustering_id: str, chosen: set[int] | None) -> Members:
        found = members.read_members(session, clustering_id, chosen)
        read.append(set(found.cluster_ids.tolist()))
        return found

    monkeypatch.setattr(similarity, "read_members", read_members)
    image = stored.images[1]
    for operation, expected in (
        (None, {0, 1, 2, 3, 5}),
        (Rename(cluster_id=0, label="x"), None),
        (Move(image_ids=(image,), cluster_id=3), {1, 3}),
        (Undo(), {1, 3}),
        (Exclude(image_ids=(image,)), {1}),
        (Merge(cluster_ids=(2, 5), into=5), {5}),
        (Move(image_ids=(image,), new_cluster="back"), {6}),
    ):
        if operation is not None:
            edit(any_runtime, stored, operation)
        found = similar(any_runtime, stored, 0)
        assert read == ([] if expected is None else [expected]), operation
        similarity._centers.add(stored.clustering_id, EMPTY)
        assert similar(any_runtime, stored, 0) == found  # as if all were computed
        read.clear()


def test_centers_need_features_only_when_images_have_moved(
    any_runtime: Runtime, stored: Stored
) -> None:
    found = similar(any_runtime, stored, 0)
    any_runtime.storage.delete(f"{FOLDER}/features.npy")
    assert similar(any_runtime, stored, 0) == found
    edit(any_runtime, stored, Exclude(image_ids=(stored.images[0],)))
    with pytest.raises(FeaturesMissing):
        similar(any_runtime, stored, 0)


def by_similarity(runtime: Runtime, stored: Stored, cluster_id: int, image: str) -> SimilarImages:
    with runtime.db.read() as session:
        clustering = get_clustering(session, TENANT, stored.clustering_id)
        cluster = get_cluster(session, clustering, cluster_id)
    return images_by_similarity(runtime.db, runtime.storage, TENANT, cluster, image)


def test_images_by_similarity(
    any_runtime: Runtime, stored: Stored, features: npt.NDArray[np.float32]
) -> None:
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    for image in (0, 1):  # of this cluster, and of another
        found = by_similarity(any_runtime, stored, 0, stored.images[image])
        expected = {
            stored.images[i]: float(units[i] @ units[image])
            for i, place in enumerate(PLACES)
            if place == 0
        }
        assert dict(found.at(0, 99)) == pytest.approx(expected, abs=1e-6)
        assert [i for i, _ in found.at(0, 99)] == sorted(expected, key=lambda i: -expected[i])
    assert by_similarity(any_runtime, stored, 0, stored.images[0]).at(0, 1)[0][1] == 1.0
    assert len(by_similarity(any_runtime, stored, 4, stored.images[0])) == 0


def test_a_position_in_an_order_with_equal_similarities(any_runtime: Runtime) -> None:
    found = store(any_runtime, [0] * 5)
    save_features(any_runtime, np.ones((5, 2), dtype=np.float32), list(range(5)))
    order = by_similarity(any_runtime, found, 0, found.images[3])
    assert order.at(0, 5) == [(image, 1.0) for image in found.images]
    assert [order.after(1.0, image) for image in found.images] == [1, 2, 3, 4, 5]
    assert (order.after(0.9, "img_"), order.after(1.1, "img_")) == (5, 0)
    assert order.at(4, 5) == [(found.images[4], 1.0)]


def test_an_image_without_features_or_of_another_dataset(
    any_runtime: Runtime, stored: Stored
) -> None:
    other = store(any_runtime, [0])
    with pytest.raises(NotFound):
        by_similarity(any_runtime, stored, 0, other.images[0])
    with any_runtime.db.write() as session:
        session.get_one(Image, stored.images[0]).sha256 = "ee" * 32
    with pytest.raises(FeaturesMissing):
        by_similarity(any_runtime, stored, 1, stored.images[0])
