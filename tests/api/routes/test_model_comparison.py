"""Comparing versions over HTTP."""

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Json, MakeClustering

URL = "/v1/models/cats-dogs:compare"


@pytest.fixture(autouse=True)
def _two_versions(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> None:
    make_clustering(dataset["id"])
    make_clustering(dataset["id"], n_clusters=2)


def test_two_versions(client: TestClient, dataset: Json) -> None:
    answer = client.get(URL, params={"left": 1, "right": 2})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["name"], body["left"], body["right"]) == ("cats-dogs", 1, 2)
    paths = {item["path"]: (item["left"], item["right"]) for item in body["configuration"]}
    assert paths == {"n_clusters": (3, 2), "config.n_clusters": (3, 2)}
    assert body["cluster_names"] == [{"path": "2", "left": "cluster 2", "right": None}]
    found = body["assignments"]
    assert (found["dataset_id"], found["images"]) == (dataset["id"], 4)
    assert found["same_cluster"] == found["adjusted_rand_index"] == 1.0
    assert found["movements"] == []
    asked = client.get(URL, params={"left": 1, "right": 2, "dataset_id": dataset["id"]})
    assert asked.json() == body


def test_a_version_without_a_clustering_of_the_dataset(client: TestClient, dataset: Json) -> None:
    clustering = client.get("/v1/models/cats-dogs/versions/2").json()["clustering_id"]
    assert client.delete(f"/v1/clusterings/{clustering}").status_code == 204
    answer = client.get(URL, params={"left": 1, "right": 2})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_predicted")
    assert '"model": "cats-dogs/versions/2"' in answer.json()["detail"]
    assert dataset["id"] in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"left": 1, "right": 3}, 404),
        ({"left": 1, "right": 2, "dataset_id": "ds_none"}, 404),
        ({"left": 1}, 422),
        ({"left": 0, "right": 2}, 422),
        ({"left": 1, "right": 2**31}, 422),
    ],
)
def test_invalid_comparisons(client: TestClient, query: Json, status: int) -> None:
    assert client.get(URL, params=query).status_code == status


def test_an_unknown_model(client: TestClient) -> None:
    answer = client.get("/v1/models/none:compare", params={"left": 1, "right": 2})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
