"""Coarser groups of a clustering: their clusters, labels and limits, and what is kept."""

import numpy as np
import pytest

from app.core.clusterings import hierarchy, similarity
from app.core.clusterings.hierarchy import Hierarchy, group_clusters
from app.core.clusterings.operations import Exclude, Merge, Move, Rename
from app.core.platform.errors import FeaturesMissing, InvalidRequest, NotFound
from app.core.runtime import Runtime
from temi.analysis.hierarchy import merge_tree
from tests.core.clustering_rows import FOLDER, TENANT, Stored, edit, save_features, store

# Degrees of the images on a circle: clusters 0 and 3 are near each other, and 1 and 4; 2 is alone,
# and 5 is empty.
PLACES = [0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4]
DEGREES = [0, 2, 4, 90, 92, 200, 10, 11, 12, 13, 99]


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    angles = np.radians(DEGREES)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    save_features(any_runtime, rows, list(range(len(rows))))
    return store(any_runtime, PLACES, n_clusters=6)


def grouped(runtime: Runtime, stored: Stored, n_groups: int) -> Hierarchy:
    return group_clusters(runtime.db, runtime.storage, TENANT, stored.clustering_id, n_groups)


def test_similar_clusters_form_groups(any_runtime: Runtime, stored: Stored) -> None:
    found = grouped(any_runtime, stored, 3)
    assert found.revision == 1
    assert found.groups == [
        ([3, 0], 7, "cluster 3"),
        ([1, 4], 3, "cluster 1"),
        ([2], 1, "cluster 2"),
    ]
    assert [group.cluster_ids for group in grouped(any_runtime, stored, 1).groups] == [
        [3, 0, 1, 2, 4]
    ]
    single = grouped(any_runtime, stored, 5)
    assert [group.size for group in single.groups] == [4, 3, 2, 1, 1]
    assert single.costs == found.costs == sorted(found.costs)
    assert len(found.costs) == 4


def test_the_costs_are_those_of_the_mean_directions(any_runtime: Runtime, stored: Stored) -> None:
    angles = np.radians([2, 91, 200, 11.5, 99])
    means = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    expected = [merge.cost for merge in merge_tree(means, [3, 2, 1, 4, 1])]
    assert grouped(any_runtime, stored, 2).costs == pytest.approx(expected, rel=1e-4)


def test_the_largest_named_cluster_names_its_group(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Rename(cluster_id=0, label="cats"))
    first = grouped(any_runtime, stored, 3).groups[0]
    assert first == ([0, 3], 7, "cats")
    edit(any_runtime, stored, Rename(cluster_id=3, label="dogs"))
    assert grouped(any_runtime, stored, 3).groups[0] == ([3, 0], 7, "dogs")


def test_a_merged_group_is_one_cluster_of_the_next_hierarchy(
    any_runtime: Runtime, stored: Stored
) -> None:
    before = grouped(any_runtime, stored, 3)
    edit(any_runtime, stored, Merge(cluster_ids=(3, 0), into=3))
    found = grouped(any_runtime, stored, 3)
    assert (found.revision, len(found.costs)) == (2, 3)
    assert [group.size for group in found.groups] == [group.size for group in before.groups]
    edit(any_runtime, stored, Move(image_ids=stored.images[5:6], cluster_id=5))
    assert [5] in [group.cluster_ids for group in grouped(any_runtime, stored, 3).groups]
    edit(any_runtime, stored, Exclude(image_ids=stored.images[5:6]))
    with pytest.raises(InvalidRequest, match="n_groups: must be at most 3"):
        grouped(any_runtime, stored, 4)


def test_merges_and_centers_are_kept(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = similarity.similar_clusters(
        any_runtime.db, any_runtime.storage, TENANT, stored.clustering_id, 0, 9
    )
    any_runtime.storage.delete(f"{FOLDER}/features.npy")  # the centers are known
    assert len(found.clusters) == 4
    first = grouped(any_runtime, stored, 2)
    monkeypatch.setattr(hierarchy, "merge_tree", None)  # not called again
    assert grouped(any_runtime, stored, 2) == first
    assert len(grouped(any_runtime, stored, 4).groups) == 4


def test_features_that_are_gone(any_runtime: Runtime, stored: Stored) -> None:
    any_runtime.storage.delete(f"{FOLDER}/features.npy")
    with pytest.raises(FeaturesMissing):
        grouped(any_runtime, stored, 2)


def test_another_tenant_has_no_such_clustering(any_runtime: Runtime, stored: Stored) -> None:
    with pytest.raises(NotFound):
        group_clusters(any_runtime.db, any_runtime.storage, "other", stored.clustering_id, 2)


def test_too_many_clusters(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hierarchy, "MAX_CLUSTERS", 4)
    with pytest.raises(InvalidRequest, match=r"has 5 clusters with images; at most 4 .*Merge some"):
        grouped(any_runtime, stored, 2)


def test_no_connection_is_held_while_it_computes(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_use: list[int] = []

    def observed(*arguments: object) -> object:
        in_use.append(any_runtime.db.engine.pool.checkedout())  # type: ignore[attr-defined]
        return merge_tree(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(hierarchy, "merge_tree", observed)
    grouped(any_runtime, stored, 2)
    assert in_use == [0]
