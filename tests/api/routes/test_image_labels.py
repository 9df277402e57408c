"""The labels of an image."""

from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import store_clustering, upload, work_on
from tests.images import png_bytes


def test_labels_of_all_clusterings(any_client: TestClient, any_runtime: Runtime) -> None:
    job = upload(any_client, {f"{i}.png": png_bytes((i, i, i)) for i in range(3)})
    work_on(any_runtime, job["id"])
    older, newer = (
        store_clustering(any_runtime, job["dataset_id"], model=name) for name in ("a", "b")
    )
    rows = any_client.get(f"/v1/clusterings/{older}/assignments").json()["data"]
    image_id = rows[1]["image_id"]
    edits = [
        (older, {"kind": "rename", "cluster_id": 1, "label": "dogs"}),
        (newer, {"kind": "exclude", "image_ids": [image_id]}),
    ]
    for clustering_id, body in edits:
        url = f"/v1/clusterings/{clustering_id}/operations"
        assert any_client.post(url, json=body, headers={"If-Match": '"1"'}).status_code == 201

    labels = any_client.get(f"/v1/images/{image_id}/labels").json()["data"]
    sure = rows[1]["probability"]
    assert labels == [
        {
            "clustering_id": newer,
            "dataset_id": job["dataset_id"],
            "revision": 2,
            "current": False,
            "cluster_id": None,
            "label": None,
            "probability": sure,
            "excluded": True,
            "model": {"name": "b", "version": 1},
        },
        {
            "clustering_id": older,
            "dataset_id": job["dataset_id"],
            "revision": 2,
            "current": True,
            "cluster_id": 1,
            "label": "dogs",
            "probability": sure,
            "excluded": False,
            "model": {"name": "a", "version": 1},
        },
    ]
    page = any_client.get(f"/v1/images/{image_id}/labels?limit=1").json()
    assert (page["data"], page["has_more"]) == (labels[:1], True)
    params = {"cursor": page["next_cursor"]}
    page = any_client.get(f"/v1/images/{image_id}/labels", params=params).json()
    assert page["data"] == labels[1:]


def test_an_unknown_image(any_client: TestClient) -> None:
    answer = any_client.get("/v1/images/img_none/labels")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
