"""Comparison of two versions: configuration, metrics and assignments."""

from typing import Any

import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sqlalchemy import delete, event

from app.core.clusterings.operations import Exclude, Merge, Rename
from app.core.clusterings.rows import Assigned, add_assignments, add_clusters, refresh_clusters
from app.core.models import registry
from app.core.models.comparison import Comparison, compare
from app.core.platform.errors import InvalidRequest, NotFound, NotPredicted
from app.core.platform.ids import new_id
from app.core.platform.tables import Clustering
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, edit, store
from tests.model_files import small_manifest

_LEFT = [0, 0, 0, 1, 1, 1, 2, 2]
_RIGHT = [2, 2, 2, 0, 0, 2, 1, 0]


def _version(runtime: Runtime, clustering_id: str | None, **manifest: Any) -> None:
    with runtime.db.write() as session:
        registry.add_version(
            session,
            tenant=TENANT,
            name="m",
            job_id=None,
            clustering_id=clustering_id,
            folder="models/x",
            manifest=small_manifest(3, **manifest),
            files={},
        )


def _cluster(runtime: Runtime, stored: Stored, places: list[int], version: int) -> Stored:
    """Another clustering of the same images; images without a cluster are not in it."""
    with runtime.db.write() as session:
        clustering = Clustering(
            id=new_id("cl"),
            tenant=TENANT,
            dataset_id=stored.dataset_id,
            model_name="m",
            model_version=version,
            n_clusters=3,
            image_count=len(places),
            metrics={},
        )
        session.add(clustering)
        session.flush()
        add_clusters(session, clustering.id, range(3))
        images = zip(stored.images, places, strict=False)
        rows = (Assigned(image_id, place, 0.5, 0.1, 0.5) for image_id, place in images)
        add_assignments(session, clustering.id, rows)
        refresh_clusters(session, clustering.id)
        return Stored(
            clustering_id=clustering.id, dataset_id=stored.dataset_id, images=stored.images
        )


def _compare(
    runtime: Runtime, left: int = 1, right: int = 2, dataset_id: str | None = None
) -> Comparison:
    with runtime.db.read() as session:
        model = registry.get_model(session, TENANT, "m")
        ours, theirs = (registry.get_version(session, model, n) for n in (left, right))
        return compare(session, model, ours, theirs, dataset_id)


@pytest.fixture
def first(any_runtime: Runtime) -> Stored:
    """The clustering of version 1."""
    stored = store(any_runtime, _LEFT, n_clusters=3)
    _version(any_runtime, stored.clustering_id, metrics={"temi": {"accuracy": 0.5, "nmi": 0.4}})
    return stored


@pytest.fixture
def second(any_runtime: Runtime, first: Stored) -> Stored:
    """The clustering of version 2: the same groups with other numbers, except for two images."""
    stored = _cluster(any_runtime, first, _RIGHT, version=2)
    _version(
        any_runtime,
        stored.clustering_id,
        config={"n_heads": 4, "temperature": 0.1},
        temperature=0.2,
        metrics={"temi": {"accuracy": 0.75, "matching": "text"}, "kmeans": None},
    )
    return stored


def test_assignments_of_both_versions_are_compared(
    any_runtime: Runtime, first: Stored, second: Stored
) -> None:
    edit(any_runtime, first, Rename(cluster_id=1, label="dogs"))
    edit(any_runtime, second, Rename(cluster_id=2, label="cats"))
    found = _compare(any_runtime).assignments
    assert (found.dataset_id, found.images) == (first.dataset_id, 8)
    assert found.left_clustering_id == first.clustering_id
    assert found.right_clustering_id == second.clustering_id
    assert found.same_cluster == 6 / 8
    assert found.adjusted_rand_index == pytest.approx(adjusted_rand_score(_LEFT, _RIGHT))
    mutual = normalized_mutual_info_score(_LEFT, _RIGHT)
    assert found.normalized_mutual_information == pytest.approx(mutual)
    shown = [
        (m.left_cluster_id, m.left_label, m.right_cluster_id, m.right_label, m.images)
        for m in found.movements
    ]
    assert shown == [(1, "dogs", 2, "cats", 1), (2, "cluster 2", 0, "cluster 0", 1)]


def test_differences_of_the_versions(any_runtime: Runtime, second: Stored) -> None:
    edit(any_runtime, second, Rename(cluster_id=2, label="cats"))
    found = _compare(any_runtime)
    configuration = {d.path: (d.left, d.right) for d in found.configuration}
    assert configuration["temperature"] == (0.1, 0.2)
    assert configuration["config.n_heads"] == (16, 4)
    assert configuration["config.steps"] == (100, None)
    assert not configuration.keys() & {"backbone", "config.temperature", "n_clusters"}
    metrics = {d.path: (d.left, d.right) for d in found.metrics}
    assert metrics == {"temi.accuracy": (0.5, 0.75), "temi.nmi": (0.4, None)}
    names = [(d.path, d.left, d.right) for d in found.cluster_names]
    assert names == [("2", "cluster 2", "cats")]


def test_operations_do_not_count(any_runtime: Runtime, first: Stored, second: Stored) -> None:
    before = _compare(any_runtime).assignments
    edit(any_runtime, first, Merge(cluster_ids=(0, 1)))
    edit(any_runtime, first, Exclude(image_ids=(first.images[7],)))
    edit(any_runtime, second, Exclude(image_ids=(first.images[0],)))
    after = _compare(any_runtime).assignments
    assert (after.images, after.same_cluster) == (before.images, before.same_cluster)
    assert after.adjusted_rand_index == before.adjusted_rand_index


def test_the_newest_clustering_of_a_version_counts(
    any_runtime: Runtime, first: Stored, second: Stored
) -> None:
    newer = _cluster(any_runtime, first, [0, 0, 0, 1, 1], version=2)
    found = _compare(any_runtime).assignments
    assert found.right_clustering_id == newer.clustering_id
    assert (found.images, found.same_cluster, found.movements) == (5, 1.0, [])


def test_no_common_image(any_runtime: Runtime, first: Stored, second: Stored) -> None:
    _cluster(any_runtime, first, [], version=2)
    found = _compare(any_runtime).assignments
    assert (found.images, found.same_cluster, found.movements) == (0, None, [])


def test_only_counts_are_read_from_the_database(
    any_runtime: Runtime, first: Stored, second: Stored
) -> None:
    statements: list[str] = []
    event.listen(
        any_runtime.db.engine,
        "before_cursor_execute",
        lambda *given: statements.append(given[2]),
    )
    _compare(any_runtime)
    asked = [text for text in statements if "assignments" in text]
    assert len(asked) == 1
    assert "count(" in asked[0]
    assert "GROUP BY" in asked[0]


def test_several_common_datasets_need_a_choice(
    any_runtime: Runtime, first: Stored, second: Stored
) -> None:
    other = store(any_runtime, [0, 1])
    _cluster(any_runtime, other, [0, 0], version=2)
    with pytest.raises(InvalidRequest) as refused:
        _compare(any_runtime)
    assert refused.value.errors[0].field == "dataset_id"
    assert other.dataset_id in refused.value.detail
    assert _compare(any_runtime, dataset_id=other.dataset_id).assignments.images == 2


def test_a_version_without_a_clustering_of_the_dataset(
    any_runtime: Runtime, first: Stored, second: Stored
) -> None:
    with any_runtime.db.write() as session:
        session.execute(delete(Clustering).where(Clustering.id == second.clustering_id))
    for dataset_id in (None, first.dataset_id):
        with pytest.raises(NotPredicted) as refused:
            _compare(any_runtime, dataset_id=dataset_id)
        assert '"model": "m/versions/2"' in refused.value.detail
        assert f'"dataset_id": "{first.dataset_id}"' in refused.value.detail
    with any_runtime.db.write() as session:
        session.execute(delete(Clustering))
    with pytest.raises(NotPredicted, match="any dataset"):
        _compare(any_runtime)
    with pytest.raises(NotFound):
        _compare(any_runtime, dataset_id="ds_none")
