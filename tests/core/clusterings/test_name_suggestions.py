"""Names for clusters from a vocabulary, a classifier and file names."""

import json

import numpy as np
import pytest
import safetensors.numpy
from sqlalchemy import select

from app.core.clusterings import name_suggestions
from app.core.clusterings.name_suggestions import Vocabulary, suggest_names
from app.core.clusterings.operations import Merge
from app.core.datasets.features import classifier_key
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.tables import Image
from app.core.runtime import Runtime
from tests.core.clustering_rows import FOLDER, TENANT, Stored, edit, save_features, store

PLACES = [0] * 6 + [1] * 6 + [2] * 6
CAT, DOG, CAR = 281, 207, 817  # of ImageNet: tabby, golden retriever, sports car


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    """Three clusters, whose features point along the first three axes; the fourth is empty."""
    found = store(any_runtime, PLACES, n_clusters=4)
    features = np.eye(3, dtype=np.float32)[PLACES] + np.float32(0.01)
    save_features(any_runtime, features, list(range(len(PLACES))))
    return found


def _names(
    runtime: Runtime, stored: Stored, vocabulary: Vocabulary | None = None
) -> dict[int, list[str]]:
    found = suggest_names(
        runtime.db, runtime.storage, TENANT, stored.clustering_id, None, vocabulary
    )
    assert all(0 < s.score <= 1 for c in found.clusters for s in c.suggestions)
    return {one.cluster_id: [s.name for s in one.suggestions] for one in found.clusters}


def _rename_files(runtime: Runtime, stored: Stored, names: list[str]) -> None:
    with runtime.db.write() as session:
        for image in session.scalars(select(Image)):
            position = stored.images.index(image.id)
            image.name = f"trip/{names[PLACES[position]]}/IMG_{position}.jpg"
            image.attributes = {"season": "summer", "number": 3}


def _save_classifier(runtime: Runtime) -> None:
    """Each of the first three axes belongs to one of three classes."""
    weight = np.zeros((1000, 3), dtype=np.float32)
    weight[[CAT, DOG, CAR], [0, 1, 2]] = 9
    names = [f"class {number}, also called so" for number in range(1000)]
    names[CAT], names[DOG], names[CAR] = "tabby, tabby cat", "golden retriever", "sports car"
    tensors = {"weight": weight, "bias": np.zeros(1000, np.float32)}
    data = safetensors.numpy.save(tensors, {"names": json.dumps(names)})
    runtime.storage.write(classifier_key(FOLDER), data)


def test_nothing_is_known(any_runtime: Runtime, stored: Stored) -> None:
    assert _names(any_runtime, stored) == {0: [], 1: [], 2: [], 3: []}


def test_by_file_names(any_runtime: Runtime, stored: Stored) -> None:
    """What all have in common, the trip and the season, names none."""
    _rename_files(any_runtime, stored, ["cats", "dogs", "red cars"])
    assert _names(any_runtime, stored) == {0: ["cats"], 1: ["dogs"], 2: ["red cars"], 3: []}
    any_runtime.storage.delete(f"{FOLDER}/features.npy")
    found = suggest_names(any_runtime.db, any_runtime.storage, TENANT, stored.clustering_id, [1])
    (dogs,) = found.clusters
    assert "dogs" in [one.name for one in dogs.suggestions]
    assert {one.sources for one in dogs.suggestions} == {("files",)}


def test_by_the_classifier(any_runtime: Runtime, stored: Stored) -> None:
    _save_classifier(any_runtime)
    found = _names(any_runtime, stored)
    assert set(found[0]) == {"cat", "tabby"}
    assert set(found[1]) == {"dog", "golden retriever", "retriever"} - {"retriever"}
    assert set(found[2]) == {"sports car"}  # "car" only repeats it
    assert found[3] == []


def test_by_a_vocabulary(any_runtime: Runtime, stored: Stored) -> None:
    words = ["kitten", "puppy", "engine", "anything"]
    vectors = np.concatenate([np.eye(3), np.ones((1, 3))]).astype(np.float32)
    vocabulary = Vocabulary(words=words, vectors=vectors, key="v")
    found = _names(any_runtime, stored, vocabulary)
    assert [found[number][0] for number in range(3)] == ["kitten", "puppy", "engine"]
    other = Vocabulary(words=[*"abcd"], vectors=vectors, key="w")
    assert _names(any_runtime, stored, other)[0][0] == "a"  # not those that were kept


def test_sources_that_agree(any_runtime: Runtime, stored: Stored) -> None:
    _save_classifier(any_runtime)
    _rename_files(any_runtime, stored, ["Tabby", "x", "y"])
    found = suggest_names(any_runtime.db, any_runtime.storage, TENANT, stored.clustering_id, [0])
    best = found.clusters[0].suggestions[0]
    assert (best.name, best.sources) == ("tabby", ("classifier", "files"))
    assert best.score > found.clusters[0].suggestions[1].score


def test_suggestions_are_kept_until_the_clustering_changes(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    _rename_files(any_runtime, stored, ["cats", "dogs", "cars"])
    before = _names(any_runtime, stored)
    with monkeypatch.context() as context:
        context.setattr(name_suggestions, "_suggest", None)  # would fail
        assert _names(any_runtime, stored) == before
    edit(any_runtime, stored, Merge(cluster_ids=[0, 1], into=0))
    after = _names(any_runtime, stored)
    assert set(after) == {0, 2, 3}
    assert set(after[0]) == {"cats", "dogs"}


def test_clusters_that_cannot_be_named(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, storage = any_runtime.db, any_runtime.storage
    for tenant, cluster_ids in ((TENANT, [0, 9]), ("another", None)):
        with pytest.raises(NotFound):
            suggest_names(db, storage, tenant, stored.clustering_id, cluster_ids)
    monkeypatch.setattr(name_suggestions, "MAX_CLUSTERS", 3)
    with pytest.raises(InvalidRequest, match="up to 3 of the 4 clusters"):
        suggest_names(db, storage, TENANT, stored.clustering_id)
