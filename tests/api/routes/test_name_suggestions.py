"""Names for the clusters of a real training."""

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import COLORS, Json


@pytest.fixture
def client(trained: Json) -> TestClient:
    found: TestClient = trained["client"]
    return found


@pytest.fixture
def path(trained: Json) -> str:
    return f"/v1/clusterings/{trained['job']['result']['clustering_id']}"


def test_folders_and_classes_name_the_clusters(client: TestClient, path: str) -> None:
    body = client.get(f"{path}/name-suggestions").json()
    assert body["revision"] == 1
    rows = client.get(f"{path}/assignments").json()["data"]
    color = {row["cluster_id"]: row["name"].partition("/")[0] for row in rows}
    assert len(body["data"]) == len(COLORS)
    for one in body["data"]:
        names = {s["name"]: s["sources"] for s in one["suggestions"]}
        assert 1 <= len(names) <= 3
        assert "files" in names[color[one["cluster_id"]]]
        assert one["label"] == f"cluster {one['cluster_id']}"
    used = {s for one in body["data"] for name in one["suggestions"] for s in name["sources"]}
    assert used == {"classifier", "files"}


def test_some_clusters(client: TestClient, path: str) -> None:
    every = client.get(f"{path}/name-suggestions").json()["data"]
    some = client.get(f"{path}/name-suggestions", params={"cluster_id": [2, 0]}).json()["data"]
    assert some == [every[0], every[2]]


def test_bad_requests(client: TestClient, path: str) -> None:
    answers = [
        client.get(f"{path}/name-suggestions", params={"cluster_id": number})
        for number in (99, -1, "x", 2**31)
    ]
    assert [answer.status_code for answer in answers] == [404, 422, 422, 422]
    many = client.get(f"{path}/name-suggestions", params={"cluster_id": [0] * 201})
    assert many.status_code == 422
    assert client.get("/v1/clusterings/cl_unknown/name-suggestions").status_code == 404
