"""Coarser groups of a clustering."""

import pytest
from fastapi.testclient import TestClient

from app.core.datasets import features
from app.core.runtime import Runtime
from tests.api.conftest import store_clustering, upload, work_on
from tests.images import png_bytes


@pytest.fixture
def url(any_client: TestClient, any_runtime: Runtime) -> str:
    """Three clusters of two images each; the fourth is empty."""
    job = upload(any_client, {f"{i}.png": png_bytes((i, 0, 0)) for i in range(6)})
    work_on(any_runtime, job["id"])
    clustering_id = store_clustering(any_runtime, job["dataset_id"], n_clusters=4)
    found = f"/v1/clusterings/{clustering_id}"
    ids = [row["image_id"] for row in any_client.get(f"{found}/assignments").json()["data"]]
    for cluster_id in range(3):
        image_ids = ids[2 * cluster_id : 2 * cluster_id + 2]
        body = {"kind": "move", "image_ids": image_ids, "cluster_id": cluster_id}
        any_client.post(f"{found}/operations", json=body, headers={"If-Match": "*"})
    return found


def test_groups_of_clusters(any_client: TestClient, url: str) -> None:
    revision = any_client.get(url).json()["revision"]
    for n_groups, sizes in ((1, [6]), (2, [4, 2]), (3, [2, 2, 2])):
        found = any_client.get(f"{url}/hierarchy", params={"n_groups": n_groups}).json()
        assert (found["revision"], found["n_groups"]) == (revision, n_groups)
        assert [group["size"] for group in found["groups"]] == sizes
        members = [number for group in found["groups"] for number in group["cluster_ids"]]
        assert sorted(members) == [0, 1, 2]
        first, second = found["costs"]
        assert 0 < first < second


def test_a_group_merged_as_it_is_listed_keeps_its_label(any_client: TestClient, url: str) -> None:
    headers = {"If-Match": "*"}
    body = {"kind": "rename", "cluster_id": 1, "label": "named"}
    any_client.post(f"{url}/operations", json=body, headers=headers)
    (group,) = any_client.get(f"{url}/hierarchy", params={"n_groups": 1}).json()["groups"]
    assert (group["label"], group["cluster_ids"][0]) == ("named", 1)
    ids = group["cluster_ids"]
    merge = {"kind": "merge", "cluster_ids": ids, "into": ids[0]}
    assert any_client.post(f"{url}/operations", json=merge, headers=headers).status_code == 201
    found = any_client.get(f"{url}/hierarchy", params={"n_groups": 1}).json()
    assert found["groups"] == [{"cluster_ids": [1], "size": 6, "label": "named"}]
    assert found["costs"] == []


@pytest.mark.parametrize("n_groups", ["0", "-1", "4", "1001", "many", None])
def test_numbers_of_groups_that_there_cannot_be(
    any_client: TestClient, url: str, n_groups: str | None
) -> None:
    params = {} if n_groups is None else {"n_groups": n_groups}
    answer = any_client.get(f"{url}/hierarchy", params=params)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_request")
    assert "n_groups" in problem["errors"][0]["field"]


def test_a_busy_service(any_client: TestClient, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_WAIT_SECONDS", 0.01)
    with features.computing(), features.computing():
        answer = any_client.get(f"{url}/hierarchy", params={"n_groups": 2})
    assert (answer.status_code, answer.json()["code"]) == (429, "queue_full")


def test_features_that_are_gone(any_client: TestClient, any_runtime: Runtime, url: str) -> None:
    any_runtime.storage.delete_folder("embeddings")
    answer = any_client.get(f"{url}/hierarchy", params={"n_groups": 2})
    assert (answer.status_code, answer.json()["code"]) == (409, "features_missing")


def test_an_unknown_clustering(any_client: TestClient) -> None:
    answer = any_client.get("/v1/clusterings/cl_none/hierarchy", params={"n_groups": 2})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
