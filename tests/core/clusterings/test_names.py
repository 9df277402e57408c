"""Names that users gave, and merges, are used by the model."""

import numpy as np

from app.core.clusterings.names import ModelClusters, current_clusters
from app.core.clusterings.operations import Merge, Move, Operation, Rename, Undo, apply_operation
from app.core.platform.tables import ModelVersion
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, store

_MANIFEST = {"clusters": [{"cluster_id": i, "label": f"cluster {i}"} for i in range(4)]}


def _clusters(runtime: Runtime, clustering_id: str | None) -> ModelClusters:
    version = ModelVersion(clustering_id=clustering_id, manifest=_MANIFEST)
    with runtime.db.read() as session:
        return current_clusters(session, version)


def _names(runtime: Runtime, clustering_id: str | None) -> list[str]:
    return _clusters(runtime, clustering_id).names


def _edit(runtime: Runtime, clustering_id: str, *operations: Operation) -> None:
    for operation in operations:
        with runtime.db.write() as session:
            apply_operation(session, TENANT, clustering_id, operation)


def test_a_renamed_cluster(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0, 1, 2, 3])
    assert _names(any_runtime, stored.clustering_id) == [f"cluster {i}" for i in range(4)]
    _edit(any_runtime, stored.clustering_id, Rename(cluster_id=2, label="cats"))
    assert _names(any_runtime, stored.clustering_id)[2] == "cats"


def test_a_merged_cluster_has_the_name_of_its_target(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0, 1, 2, 3])
    _edit(
        any_runtime,
        stored.clustering_id,
        Merge(cluster_ids=[0, 1], into=1),
        Merge(cluster_ids=[1, 2], into=2, label="cats"),
    )
    assert _names(any_runtime, stored.clustering_id) == ["cats", "cats", "cats", "cluster 3"]
    _edit(any_runtime, stored.clustering_id, Undo())
    names = _names(any_runtime, stored.clustering_id)
    assert names == ["cluster 1", "cluster 1", "cluster 2", "cluster 3"]


def test_without_its_clustering_a_version_has_the_names_of_its_manifest(
    any_runtime: Runtime,
) -> None:
    assert _names(any_runtime, None) == _names(any_runtime, "cl_gone")
    assert _names(any_runtime, None)[3] == "cluster 3"


def test_probabilities_of_merged_clusters_are_added_up(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0, 1, 2, 3])
    probabilities = np.array([[0.3, 0.4, 0.2, 0.1], [0.25, 0.25, 0.0, 0.5]], dtype=np.float32)
    unmerged = _clusters(any_runtime, stored.clustering_id)
    assert unmerged.merge(probabilities) is probabilities
    assert unmerged.merges == []

    _edit(any_runtime, stored.clustering_id, Merge(cluster_ids=[0, 2], into=2))
    merged = _clusters(any_runtime, stored.clustering_id)

    expected = [[0.0, 0.4, 0.5, 0.1], [0.0, 0.25, 0.25, 0.5]]
    np.testing.assert_allclose(merged.merge(probabilities), expected)
    np.testing.assert_allclose(merged.merge(probabilities[0]), expected[0])
    assert (merged.cluster_ids, merged.outputs) == ([2, 1, 2, 3], [2, 1, 2, 3])
    assert merged.merges == [[2, 0]]


def test_clusters_merged_into_one_that_a_user_made(any_runtime: Runtime) -> None:
    """The first of its outputs has the probability of all of them."""
    stored = store(any_runtime, [0, 1, 2, 3])
    move = Move(image_ids=[stored.images[0]], new_cluster="cats")
    _edit(any_runtime, stored.clustering_id, move, Merge(cluster_ids=[1, 3, 4], into=4))

    merged = _clusters(any_runtime, stored.clustering_id)

    assert merged.names == ["cluster 0", "cats", "cluster 2", "cats"]
    assert (merged.cluster_ids, merged.outputs) == ([0, 4, 2, 4], [0, 1, 2, 1])
    assert merged.merges == [[1, 3]]
    probabilities = np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32)
    np.testing.assert_allclose(merged.merge(probabilities), [0.1, 0.6, 0.3, 0.0], atol=1e-7)
