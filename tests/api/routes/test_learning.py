"""Clustering jobs that learn from what people said, over REST."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Json, upload, work_on
from tests.images import png_bytes


def _start(client: TestClient, dataset_id: str, **changes: Any) -> Any:
    return client.post("/v1/jobs", json={"dataset_id": dataset_id, **changes})


def _field(answer: Any) -> str:
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    return str(error["field"])


def test_a_clustering_is_trained_again_with_what_people_said(trained: Json) -> None:
    client, dataset_id = trained["client"], trained["job"]["dataset_id"]
    clustering = trained["job"]["result"]["clustering_id"]
    url = f"/v1/clusterings/{clustering}"
    assert _field(_start(client, dataset_id, learn_from=clustering)) == "learn_from"
    first, second = client.get(f"{url}/assignments", params={"limit": 2}).json()["data"]
    other = (first["cluster_id"] + 1) % 3
    operations = [
        {"kind": "rename", "cluster_id": other, "label": "warm"},
        {"kind": "move", "image_ids": [first["image_id"]], "cluster_id": other},
        {"kind": "exclude", "image_ids": [second["image_id"]]},
    ]
    for operation in operations:
        revision = client.get(url).json()["revision"]
        headers = {"If-Match": f'"{revision}"'}
        done = client.post(f"{url}/operations", json=operation, headers=headers)
        assert done.status_code in (200, 201), done.text

    job = _start(client, dataset_id, learn_from=clustering, n_heads=4, steps=60).json()
    assert job["config"]["learn_from"]["clustering_id"] == clustering
    assert job["config"]["train"]["n_clusters"] == 3
    work_on(trained["runtime"], job["id"])

    result = client.get(f"/v1/jobs/{job['id']}").json()["result"]
    learning = result["metrics"]["learning"]
    assert (learning["moved"], learning["excluded"], learning["revision"]) == (1, 1, 4)
    new = f"/v1/clusterings/{result['clustering_id']}"
    found = client.get(f"{new}/assignments", params={"limit": 100}).json()["data"]
    clusters = {row["image_id"]: row["cluster_id"] for row in found}
    assert clusters[first["image_id"]] == other
    assert clusters.get(second["image_id"]) is None
    named = client.get(f"{new}/clusters").json()["data"]
    assert {one["cluster_id"]: one["label"] for one in named}[other] == "warm"


@pytest.mark.parametrize("given", ["cl_unknown", "not an id"])
def test_an_unknown_clustering_is_refused(client: TestClient, dataset: Json, given: str) -> None:
    assert _field(_start(client, dataset["id"], learn_from=given)) == "learn_from"


def test_the_clustering_of_another_dataset_is_refused(trained: Json) -> None:
    client = trained["client"]
    job = upload(client, {"one.png": png_bytes(), "two.png": png_bytes("blue")}, name="others")
    work_on(trained["runtime"], job["id"])
    clustering = trained["job"]["result"]["clustering_id"]

    answer = _start(client, job["dataset_id"], learn_from=clustering)

    assert _field(answer) == "learn_from"
    assert job["dataset_id"] in answer.json()["detail"]
