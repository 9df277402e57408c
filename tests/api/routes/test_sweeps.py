"""The clusterings that a sweep keeps are like any other."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import COLORS, Json, work_on
from tests.conftest import running_api
from tests.images import jpeg_bytes
from tests.trained import EACH, TrainedData, live_copy


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, trained_data: TrainedData) -> Iterator[Json]:
    """A dataset of three colors with a current clustering, and a sweep of it."""
    settings = live_copy(trained_data, tmp_path_factory.mktemp("swept"))
    runtime = Runtime(settings)
    with running_api(settings) as client:
        body = {"kind": "sweep", "dataset_id": trained_data.job["dataset_id"]}
        body |= {"parameter": "n_clusters", "values": [2, 3], "n_heads": 4, "steps": 60}
        job = client.post("/v1/jobs", json=body)
        assert job.status_code == 202, job.text
        work_on(runtime, job.json()["id"])
        ended = client.get(f"/v1/jobs/{job.json()['id']}").json()
        assert ended["status"] == "succeeded", ended["error"]
        yield {"client": client, "runtime": runtime, "job": ended, "before": trained_data.job}
    runtime.db.dispose()


@pytest.fixture
def client(swept: Json) -> TestClient:
    found: TestClient = swept["client"]
    return found


@pytest.fixture
def points(swept: Json) -> list[Json]:
    found: list[Json] = swept["job"]["result"]["points"]
    return found


def test_they_are_listed_and_none_is_made_current(
    swept: Json, client: TestClient, points: list[Json]
) -> None:
    job = swept["job"]
    listed = client.get("/v1/clusterings", params={"dataset_id": job["dataset_id"]}).json()["data"]
    first = swept["before"]["result"]["clustering_id"]
    assert {each["id"] for each in listed} == {first, *(p["clustering_id"] for p in points)}
    found = {each["id"]: each for each in listed}
    for point in points:
        clustering = found[point["clustering_id"]]
        assert clustering["n_clusters"] == point["n_clusters"]
        assert clustering["model"] == point["model"]
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert dataset["current_clustering_id"] == first
    assert [stage for stage in job["progress"]["stages"]][-1] == "register"
    assert job["progress"]["completed"] == job["progress"]["total"] == 2 * 3 * EACH


def test_each_labels_new_images(client: TestClient, points: list[Json]) -> None:
    for point in points:
        model = point["model"]
        assert model["name"] == "colors"
        answer = client.post(
            f"/v1/models/colors/versions/{model['version']}:predict",
            files=[("files", (name, jpeg_bytes(color))) for name, color in COLORS.items()],
        )
        found = {each["cluster_id"] for each in answer.json()["data"]}
        assert len(found) == point["n_clusters"]
        version = client.get(f"/v1/models/colors/versions/{model['version']}").json()
        assert version["clustering_id"] == point["clustering_id"]


def test_one_is_edited_chosen_exported_and_deleted(
    swept: Json, client: TestClient, points: list[Json]
) -> None:
    clustering_id, dataset_id = points[0]["clustering_id"], swept["job"]["dataset_id"]
    url = f"/v1/clusterings/{clustering_id}"
    rename = {"kind": "rename", "cluster_id": 0, "label": "warm"}
    edited = client.post(f"{url}/operations", json=rename, headers={"If-Match": '"1"'})
    assert edited.status_code == 201, edited.text
    chosen = client.put(
        f"/v1/datasets/{dataset_id}/current-clustering", json={"clustering_id": clustering_id}
    )
    assert chosen.json()["current_clustering_id"] == clustering_id
    body = {"kind": "export", "clustering_id": clustering_id, "format": "csv"}
    export = client.post("/v1/jobs", json=body).json()
    work_on(swept["runtime"], export["id"])
    export_id = client.get(f"/v1/jobs/{export['id']}").json()["result"]["export_id"]
    assert "warm" in client.get(f"/v1/exports/{export_id}/content").text
    assert client.delete(url).status_code == 204
    assert client.get(f"/v1/clusterings/{points[1]['clustering_id']}").status_code == 200
    version = f"/v1/models/colors/versions/{points[0]['model']['version']}"
    assert client.delete(version).status_code == 204
    other = f"/v1/models/colors/versions/{points[1]['model']['version']}/file"
    assert client.get(other).status_code == 200


def test_the_sweep_is_plotted(swept: Json, client: TestClient) -> None:
    answer = client.get(f"/v1/jobs/{swept['job']['id']}/plots/sweep?format=svg")
    assert b"<svg" in answer.content
