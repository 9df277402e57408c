"""Clusterings: the groups and who is in them."""

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Json, MakeClustering


@pytest.fixture
def clustering(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> Json:
    found: Json = client.get(f"/v1/clusterings/{make_clustering(dataset['id'])}").json()
    return found


def test_a_clustering(client: TestClient, dataset: Json, clustering: Json) -> None:
    assert clustering["dataset_id"] == dataset["id"]
    assert clustering["model"] == {"name": "cats-dogs", "version": 1}
    assert (clustering["n_clusters"], clustering["image_count"]) == (3, 4)
    assert clustering["revision"] == 1
    assert clustering["metrics"] == {"temi": None, "kmeans": None}
    assert client.get(f"/v1/jobs/{clustering['job_id']}").status_code == 200


def test_clusterings_are_listed_newest_first(
    client: TestClient, dataset: Json, clustering: Json, make_clustering: MakeClustering
) -> None:
    newer = make_clustering(dataset["id"])
    data = client.get("/v1/clusterings").json()["data"]
    assert [item["id"] for item in data] == [newer, clustering["id"]]
    assert data[0]["model"]["version"] == 2
    params = {"dataset_id": "ds_other"}
    assert client.get("/v1/clusterings", params=params).json()["data"] == []


def test_clusters_with_their_surest_images(client: TestClient, clustering: Json) -> None:
    data = client.get(f"/v1/clusterings/{clustering['id']}/clusters").json()["data"]
    assert [(c["cluster_id"], c["label"], c["size"]) for c in data] == [
        (0, "cluster 0", 2),
        (1, "cluster 1", 2),
        (2, "cluster 2", 0),
    ]
    assert [example["name"] for example in data[0]["examples"]] == ["cats/a.jpg", "dogs/c.jpg"]
    assert data[0]["mean_probability"] == pytest.approx((0.9 + 0.9 - 0.8 / 3) / 2, abs=1e-3)
    assert (data[2]["mean_probability"], data[2]["examples"]) == (None, [])


def test_assignments_are_in_the_order_of_the_upload(client: TestClient, clustering: Json) -> None:
    data = client.get(f"/v1/clusterings/{clustering['id']}/assignments").json()["data"]
    assert [row["name"] for row in data] == ["cats/a.jpg", "cats/b.png", "dogs/c.jpg", "dogs/d.jpg"]
    assert [row["cluster_id"] for row in data] == [0, 1, 0, 1]
    assert [row["label"] for row in data] == ["cluster 0", "cluster 1", "cluster 0", "cluster 1"]
    assert data[0]["probability"] == pytest.approx(0.9)
    assert client.get(f"/v1/images/{data[0]['image_id']}").json()["name"] == "cats/a.jpg"


@pytest.mark.parametrize(("cluster_id", "count"), [(1, 2), (2, 0), (99, 0)])
def test_assignments_of_one_cluster(
    client: TestClient, clustering: Json, cluster_id: int, count: int
) -> None:
    url = f"/v1/clusterings/{clustering['id']}/assignments"
    data = client.get(url, params={"cluster_id": cluster_id}).json()["data"]
    assert [row["cluster_id"] for row in data] == [cluster_id] * count


@pytest.mark.parametrize("cluster_id", ["-1", "x", str(2**31)])
def test_a_senseless_cluster_id(client: TestClient, clustering: Json, cluster_id: str) -> None:
    url = f"/v1/clusterings/{clustering['id']}/assignments"
    assert client.get(url, params={"cluster_id": cluster_id}).status_code == 422


@pytest.mark.parametrize("path", ["", "/clusters", "/assignments"])
def test_a_clustering_that_is_not_there(client: TestClient, path: str) -> None:
    answer = client.get(f"/v1/clusterings/cl_none{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
