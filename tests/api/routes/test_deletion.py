"""Deleting images and datasets, and renaming datasets."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.core.platform.tables import Assignment, BlobDeletion, Clustering, Job
from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering, store_clustering, upload, work_on
from tests.images import png_bytes

_COLORS = ("red", "green", "blue", "white")


@pytest.fixture
def ready(any_client: TestClient, any_runtime: Runtime) -> Json:
    """A dataset of four images."""
    job = upload(any_client, {f"{color}.png": png_bytes(color) for color in _COLORS})
    work_on(any_runtime, job["id"])
    found: Json = any_client.get(f"/v1/datasets/{job['dataset_id']}").json()
    return found


def _images(client: TestClient, dataset: Json) -> list[Json]:
    data: list[Json] = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"]
    return data


def _delete(client: TestClient, dataset: Json, ids: list[str]) -> Json:
    answer = client.post(f"/v1/datasets/{dataset['id']}/images:delete", json={"image_ids": ids})
    return {"status": answer.status_code, **answer.json()} if answer.is_error else answer.json()


def _finish_jobs(runtime: Runtime) -> None:
    with runtime.db.write() as session:
        for job in session.scalars(select(Job)):
            job.status = "succeeded"


def test_an_image_is_deleted(any_client: TestClient, any_runtime: Runtime, ready: Json) -> None:
    first, *rest = _images(any_client, ready)
    answer = any_client.delete(f"/v1/images/{first['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert any_client.get(f"/v1/images/{first['id']}").status_code == 404
    assert _images(any_client, ready) == rest
    after = any_client.get(f"/v1/datasets/{ready['id']}").json()
    assert after["image_count"] == 3
    assert after["bytes"] == ready["bytes"] - first["bytes"]
    assert after["fingerprint"] != ready["fingerprint"]
    with any_runtime.db.read() as session:
        assert session.scalars(select(BlobDeletion.sha256)).all() == [first["sha256"]]
    again = any_client.delete(f"/v1/images/{first['id']}")
    assert (again.status_code, again.json()["code"]) == (404, "not_found")


def test_images_are_deleted_all_or_none(any_client: TestClient, ready: Json) -> None:
    ids = [image["id"] for image in _images(any_client, ready)]
    refused = _delete(any_client, ready, [ids[0], "img_none", ids[1]])
    assert (refused["status"], refused["code"]) == (404, "not_found")
    assert "img_none" in refused["detail"]
    assert len(_images(any_client, ready)) == 4
    left = _delete(any_client, ready, [ids[0], ids[2], ids[0]])
    assert left["image_count"] == 2
    assert [image["id"] for image in _images(any_client, ready)] == [ids[1], ids[3]]


def test_the_last_image_leaves_an_empty_dataset(any_client: TestClient, ready: Json) -> None:
    left = _delete(any_client, ready, [image["id"] for image in _images(any_client, ready)])
    assert (left["status"], left["image_count"], left["bytes"]) == ("ready", 0, 0)


def test_images_leave_the_clusterings(
    any_client: TestClient, any_runtime: Runtime, ready: Json
) -> None:
    clustering_id = store_clustering(any_runtime, ready["id"])
    _finish_jobs(any_runtime)
    images = _images(any_client, ready)  # in clusters 0, 1, 0, 1
    _delete(any_client, ready, [images[0]["id"], images[1]["id"], images[2]["id"]])
    clusters = any_client.get(f"/v1/clusterings/{clustering_id}/clusters").json()["data"]
    assert [cluster["size"] for cluster in clusters] == [0, 1, 0]
    with any_runtime.db.read() as session:
        assert session.get_one(Clustering, clustering_id).image_count == 1
        assert session.scalar(select(func.count()).select_from(Assignment)) == 1


def test_a_dataset_in_use_cannot_be_deleted(
    client: TestClient, dataset: Json, make_clustering: MakeClustering
) -> None:
    make_clustering(dataset["id"])  # its job is still open
    image = _images(client, dataset)[0]
    for answer in (
        client.delete(f"/v1/images/{image['id']}"),
        client.delete(f"/v1/datasets/{dataset['id']}"),
        client.post(
            f"/v1/datasets/{dataset['id']}/images:delete", json={"image_ids": [image["id"]]}
        ),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "dataset_in_use")
    assert len(_images(client, dataset)) == 4


def test_a_dataset_is_deleted_with_its_resources(
    any_client: TestClient, any_runtime: Runtime, ready: Json
) -> None:
    clustering_id = store_clustering(any_runtime, ready["id"])
    _finish_jobs(any_runtime)
    with any_runtime.db.read() as session:
        job_ids = session.scalars(select(Job.id)).all()
    for job_id in job_ids:
        any_runtime.storage.write(f"jobs/{job_id}/metrics.json", b"{}")
    image = _images(any_client, ready)[0]
    assert any_client.delete(f"/v1/datasets/{ready['id']}").status_code == 204
    for path in (
        f"datasets/{ready['id']}",
        f"images/{image['id']}",
        f"clusterings/{clustering_id}",
        f"jobs/{job_ids[0]}",
    ):
        assert any_client.get(f"/v1/{path}").status_code == 404
    assert any_client.get("/v1/models/cats-dogs").status_code == 200
    assert not list((any_runtime.settings.blob_dir / "jobs").iterdir())
    with any_runtime.db.read() as session:
        assert session.scalar(select(func.count()).select_from(BlobDeletion)) == 4
    assert any_client.delete(f"/v1/datasets/{ready['id']}").status_code == 404


def test_a_dataset_is_renamed(client: TestClient, dataset: Json) -> None:
    answer = client.patch(f"/v1/datasets/{dataset['id']}", json={"name": "Pets"})
    assert (answer.status_code, answer.json()["name"]) == (200, "Pets")
    assert client.get(f"/v1/datasets/{dataset['id']}").json() == answer.json()
    assert answer.json()["fingerprint"] == dataset["fingerprint"]


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x" * 201}, {"name": "x", "a": 1}])
def test_bad_names(client: TestClient, dataset: Json, body: Json) -> None:
    assert client.patch(f"/v1/datasets/{dataset['id']}", json=body).status_code == 422


@pytest.mark.parametrize("ids", [[], ["x" * 41], ["img"] * 10_001, "img"])
def test_bad_lists_of_images(client: TestClient, dataset: Json, ids: object) -> None:
    url = f"/v1/datasets/{dataset['id']}/images:delete"
    answer = client.post(url, json={"image_ids": ids})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_an_unknown_dataset(client: TestClient) -> None:
    url = "/v1/datasets/ds_none"
    for answer in (
        client.delete(url),
        client.patch(url, json={"name": "x"}),
        client.post(f"{url}/images:delete", json={"image_ids": ["img_x"]}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
