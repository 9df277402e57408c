"""Names that users gave are used by the model."""

from app.core.clusterings.names import current_names
from app.core.clusterings.operations import Merge, Operation, Rename, Undo, apply_operation
from app.core.platform.tables import ModelVersion
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, store

_MANIFEST = {"clusters": [{"cluster_id": i, "label": f"cluster {i}"} for i in range(4)]}


def _names(runtime: Runtime, clustering_id: str | None) -> list[str]:
    version = ModelVersion(clustering_id=clustering_id, manifest=_MANIFEST)
    with runtime.db.read() as session:
        return current_names(session, version)


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
