"""The registry: models, versions, aliases."""

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Json, MakeClustering


@pytest.fixture(autouse=True)
def _two_versions(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> None:
    for _ in range(2):
        make_clustering(dataset["id"])
    make_clustering(dataset["id"], model="another")


def test_models_are_listed_by_name(client: TestClient) -> None:
    data = client.get("/v1/models").json()["data"]
    assert [(model["name"], model["latest_version"]) for model in data] == [
        ("another", 1),
        ("cats-dogs", 2),
    ]
    assert client.get("/v1/models/cats-dogs").json() == data[1]
    assert data[1]["aliases"] == {"latest": 2}


def test_versions_are_listed_newest_first(client: TestClient) -> None:
    data = client.get("/v1/models/cats-dogs/versions").json()["data"]
    assert [version["version"] for version in data] == [2, 1]
    one = client.get("/v1/models/cats-dogs/versions/1").json()
    assert one == data[1]
    assert one["manifest"]["backbone"] == "efficientnet_lite0"
    assert set(one["files"]) == {"manifest.json", "model.safetensors"}
    assert client.get(f"/v1/clusterings/{one['clustering_id']}").status_code == 200


def test_an_alias_is_set_moved_and_removed(client: TestClient) -> None:
    url = "/v1/models/cats-dogs/aliases/production"
    for version in (1, 2):
        answer = client.put(url, json={"version": version})
        assert answer.status_code == 200
        assert answer.json()["aliases"] == {"latest": 2, "production": version}
    answer = client.delete(url)
    assert (answer.status_code, answer.content) == (204, b"")
    assert client.get("/v1/models/cats-dogs").json()["aliases"] == {"latest": 2}
    assert client.delete(url).status_code == 404


@pytest.mark.parametrize(
    ("alias", "body", "status"),
    [
        ("production", {"version": 3}, 404),
        ("production", {"version": 0}, 422),
        ("production", {"version": 2**31}, 422),
        ("production", {"version": 1, "extra": 1}, 422),
        ("production", {}, 422),
        ("latest", {"version": 1}, 422),
        ("Upper", {"version": 1}, 422),
        ("a" * 65, {"version": 1}, 422),
    ],
)
def test_aliases_that_are_refused(client: TestClient, alias: str, body: Json, status: int) -> None:
    answer = client.put(f"/v1/models/cats-dogs/aliases/{alias}", json=body)
    assert answer.status_code == status
    assert client.get("/v1/models/cats-dogs").json()["aliases"] == {"latest": 2}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "none", 404),
        ("GET", "none/versions", 404),
        ("GET", "none/versions/1", 404),
        ("GET", "cats-dogs/versions/3", 404),
        ("GET", "cats-dogs/versions/0", 422),
        ("GET", "cats-dogs/versions/x", 422),
        ("DELETE", "cats-dogs/aliases/none", 404),
        ("DELETE", "none/aliases/none", 404),
    ],
)
def test_unknown_resources(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, f"/v1/models/{path}")
    assert answer.status_code == status
    assert answer.json()["code"] == ("not_found" if status == 404 else "invalid_request")


@pytest.mark.parametrize("path", ["none:predict", "cats-dogs@none:predict"])
@pytest.mark.parametrize("version", ["", "/versions/9"])
def test_predicting_with_an_unknown_model(client: TestClient, path: str, version: str) -> None:
    name, _, verb = path.partition(":")
    answer = client.post(f"/v1/models/{name}{version}:{verb}", files={"files": ("a", b"x")})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
