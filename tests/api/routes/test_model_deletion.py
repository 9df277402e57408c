"""Deleting versions and models over HTTP."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.api.conftest import Json, store_clustering, upload, work_on
from tests.images import png_bytes

URL = "/v1/models/cats-dogs"


@pytest.fixture
def clusterings(any_client: TestClient, any_runtime: Runtime) -> list[str]:
    """The folders of the three versions of a model; all jobs have ended."""
    job = upload(any_client, {"a.png": png_bytes("red"), "b.png": png_bytes("blue")})
    work_on(any_runtime, job["id"])
    found = [store_clustering(any_runtime, job["dataset_id"]) for _ in range(3)]
    with any_runtime.db.write() as session:
        for row in session.scalars(select(Job)):
            row.status = "succeeded"
    return found


def _versions(client: TestClient) -> list[int]:
    return [version["version"] for version in client.get(f"{URL}/versions").json()["data"]]


def _refused(client: TestClient, url: str) -> Json:
    answer = client.delete(url)
    assert (answer.status_code, answer.json()["code"]) == (409, "version_in_use")
    body: Json = answer.json()
    return body


def test_a_version_is_deleted_with_its_files(
    any_client: TestClient, any_runtime: Runtime, clusterings: list[str]
) -> None:
    job_id = any_client.get(f"{URL}/versions/3").json()["job_id"]
    folder = any_runtime.settings.blob_dir / f"models/{job_id}"
    assert folder.is_dir()
    answer = any_client.delete(f"{URL}/versions/3")
    assert (answer.status_code, answer.content) == (204, b"")
    assert not folder.exists()
    assert _versions(any_client) == [2, 1]
    assert any_client.get(URL).json()["latest_version"] == 2
    assert any_client.get(URL).json()["aliases"] == {"latest": 2}
    assert any_client.get(f"/v1/clusterings/{clusterings[2]}").json()["model"]["version"] == 3
    assert any_client.delete(f"{URL}/versions/3").status_code == 404
    store_clustering(any_runtime, any_client.get("/v1/datasets").json()["data"][0]["id"])
    assert _versions(any_client) == [4, 2, 1]


@pytest.mark.usefixtures("clusterings")
def test_a_version_in_use_cannot_be_deleted(any_client: TestClient) -> None:
    any_client.put(f"{URL}/aliases/live", json={"version": 1})
    assert "'live'" in _refused(any_client, f"{URL}/versions/1")["detail"]
    dataset = any_client.get("/v1/datasets").json()["data"][0]["id"]
    body = {"kind": "predict", "model": "cats-dogs/versions/2", "dataset_id": dataset}
    job = any_client.post("/v1/jobs", json=body).json()
    assert job["id"] in _refused(any_client, f"{URL}/versions/2")["detail"]
    _refused(any_client, URL)
    assert _versions(any_client) == [3, 2, 1]
    any_client.post(f"/v1/jobs/{job['id']}:cancel")
    any_client.delete(f"{URL}/aliases/live")
    assert any_client.delete(URL).status_code == 204


@pytest.mark.usefixtures("clusterings")
def test_a_model_is_deleted_with_all_versions(any_client: TestClient, any_runtime: Runtime) -> None:
    assert any_client.delete(URL).status_code == 204
    assert not list((any_runtime.settings.blob_dir / "models").iterdir())
    assert any_client.get("/v1/models").json()["data"] == []
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/versions"),
        ("GET", "/versions/1"),
        ("DELETE", "/versions/1"),
    ):
        answer = any_client.request(method, f"{URL}{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    asked = any_client.post(f"{URL}:predict", files={"files": ("a", png_bytes())})
    assert asked.status_code == 404
    assert "all its versions were deleted" in asked.json()["detail"]
    store_clustering(any_runtime, any_client.get("/v1/datasets").json()["data"][0]["id"])
    assert _versions(any_client) == [4]
