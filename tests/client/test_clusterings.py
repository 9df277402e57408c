"""Clusterings, their edits, exports and jobs, against the real API."""

from pathlib import Path

import pytest

from temi_client import ApiError, Clustering, JobFailed, Selection, TemiClient
from tests.client.live import Live


@pytest.fixture
def clustering(live_client: TemiClient) -> Clustering:
    (found,) = live_client.clusterings()
    return found


def test_read_a_clustering(live_client: TemiClient, clustering: Clustering) -> None:
    assert live_client.clustering(clustering.id) == clustering
    clusters = list(live_client.clusters(clustering.id))
    assert [cluster.size for cluster in clusters] == [2, 2, 0]
    assert live_client.get_cluster(clustering.id, 1) == clusters[1]
    fewer = live_client.clusters(clustering.id, examples=1)
    assert [len(cluster.examples) for cluster in fewer] == [1, 1, 0]
    ranked = list(live_client.cluster_images(clustering.id, 0))
    assert ranked[0].probability > ranked[1].probability
    assert list(live_client.cluster_images(clustering.id, 0, sort="outlier")) == ranked[::-1]
    cursors = live_client.cluster_image_cursors(clustering.id, 0, every=1).cursors
    assert list(live_client.cluster_images(clustering.id, 0, cursor=cursors[1])) == ranked[1:]
    assert len(list(live_client.assignments(clustering.id, 1))) == 2
    statistics = live_client.statistics(clustering.id)
    assert (statistics.images, statistics.clusters, statistics.empty_clusters) == (4, 3, 1)


def test_contact_sheet_and_plot(live_client: TemiClient, clustering: Clustering) -> None:
    sheet = live_client.contact_sheet(clustering.id, 0, rows=1, columns=2, borderline_rows=0)
    assert sheet.startswith(b"\x89PNG")
    assert b"<svg" in live_client.plot(clustering.id, "sizes", format="svg")


def test_operations(live_client: TemiClient, clustering: Clustering) -> None:
    at, images = clustering.id, [a.image_id for a in live_client.assignments(clustering.id)]
    renamed = live_client.rename_cluster(at, 0, "cats")
    assert (renamed.kind, renamed.revision) == ("rename", 2)
    assert live_client.move_images(at, images[:1], new_cluster="kittens").new_cluster_ids == [3]
    assert live_client.move_images(at, images[:1], cluster_id=1).moved == 1
    assert live_client.exclude_images(at, images[1:2]).moved == 1
    assert [a.image_id for a in live_client.assignments(at, excluded=True)] == images[1:2]
    assert len(list(live_client.assignments(at, excluded=False))) == 3
    merged = live_client.merge_clusters(at, [0, 1], into=0, label="pets")
    assert live_client.get_cluster(at, 0).label == "pets"
    assert live_client.undo(at).undoes == merged.revision
    assert live_client.get_cluster(at, 0).label == "cats"
    assert live_client.clustering(at).redo == merged.revision
    live_client.redo(at)
    assert live_client.get_cluster(at, 0).label == "pets"
    assert live_client.clustering(at).undo == merged.revision
    kinds = [operation.kind for operation in live_client.operations(at)]
    assert kinds == ["redo", "undo", "merge", "exclude", "move", "move", "rename"]


def test_operations_on_a_selection(live_client: TemiClient, clustering: Clustering) -> None:
    at, images = clustering.id, [a.image_id for a in live_client.assignments(clustering.id, 0)]
    rest = Selection(cluster_id=0, except_image_ids=images[:1])
    assert live_client.move_images(at, rest, cluster_id=2).moved == 1
    assert live_client.exclude_images(at, Selection(cluster_id=1, min_probability=0)).moved == 2
    assert [cluster.size for cluster in live_client.clusters(at)] == [1, 0, 1]


def test_an_operation_on_a_stale_revision_is_refused(
    live_client: TemiClient, clustering: Clustering
) -> None:
    live_client.rename_cluster(clustering.id, 0, "cats", revision=1)
    with pytest.raises(ApiError) as caught:
        live_client.rename_cluster(clustering.id, 0, "dogs", revision=1)
    assert (caught.value.status, caught.value.code) == (412, "revision_stale")
    assert live_client.get_cluster(clustering.id, 0).label == "cats"


def test_a_split_needs_more_than_one_image(live_client: TemiClient, clustering: Clustering) -> None:
    with pytest.raises(ApiError) as caught:
        live_client.split_cluster(clustering.id, 2, parts=2, seed=0, leave=[1])
    assert caught.value.status in (409, 422)
    with pytest.raises(ApiError) as caught:
        live_client.preview_split(clustering.id, 2, parts=2, seed=0)
    assert caught.value.status in (409, 422)


def test_exports_are_created_downloaded_and_deleted(
    live: Live, live_client: TemiClient, clustering: Clustering, tmp_path: Path
) -> None:
    job = live_client.export(clustering.id, "csv", cluster_ids=[0], min_probability=0.1)
    live.work(job.id)
    export_id = (live_client.wait(job.id).result or {})["export_id"]
    (export,) = live_client.exports(clustering_id=clustering.id)
    assert live_client.get_export(export_id) == export
    seen: list[tuple[int, int]] = []
    saved = live_client.download_export(
        export_id, tmp_path, progress=lambda done, total: seen.append((done, total))
    )
    assert saved == tmp_path / export.filename
    assert seen[-1] == (export.bytes, export.bytes)
    assert len(saved.read_text().splitlines()) == 3
    live_client.delete_export(export_id)
    assert list(live_client.exports()) == []


def test_jobs_are_started_watched_and_deleted(
    live: Live, live_client: TemiClient, clustering: Clustering
) -> None:
    job = live_client.cluster(clustering.dataset_id, 2, priority=3)
    assert (job.kind, job.status, job.priority) == ("cluster", "queued", 3)
    assert live_client.job(job.id) == job
    assert [j.id for j in live_client.jobs(status="queued")] == [job.id]
    assert live_client.cancel(job.id).status == "cancelled"
    with pytest.raises(JobFailed):
        live_client.wait(job.id)
    assert live_client.retry(job.id).status == "queued"
    assert any("again" in line.message for line in live_client.logs(job.id))
    assert list(live_client.logs(job.id, after=1_000)) == []
    assert list(live_client.curves(job.id)) == []
    live_client.cancel(job.id)
    assert [state.status for state in live_client.watch(job.id)] == ["cancelled"]
    live_client.delete_job(job.id)
    assert job.id not in [j.id for j in live_client.jobs()]


def test_a_clustering_is_deleted(live_client: TemiClient, clustering: Clustering) -> None:
    live_client.delete_clustering(clustering.id)
    assert list(live_client.clusterings()) == []


def test_models_and_aliases(live_client: TemiClient) -> None:
    (model,) = live_client.models()
    (version,) = live_client.model_versions(model.name)
    assert live_client.model_version(model.name, version.version) == version
    assert live_client.set_alias(model.name, "live", 1).aliases["live"] == 1
    live_client.delete_alias(model.name, "live")
    assert "live" not in live_client.model(model.name).aliases
