"""Jobs: created, listed, cancelled."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.jobs.lifecycle import claim, finish
from app.core.runtime import Runtime
from tests.api.conftest import Json, upload
from tests.images import png_bytes


def _post(client: TestClient, dataset: Json, **changes: Any) -> Any:
    return client.post("/v1/jobs", json={"dataset_id": dataset["id"], "n_clusters": 2} | changes)


def test_a_job_without_a_number_of_clusters_finds_it(client: TestClient, dataset: Json) -> None:
    for body in ({}, {"n_clusters": "auto"}):
        job = client.post("/v1/jobs", json={"dataset_id": dataset["id"], **body}).json()
        assert job["config"]["train"]["n_clusters"] is None
        assert job["progress"]["stages"][:3] == ["embed", "count", "mine"]


@pytest.mark.parametrize("number", [1, 25_001, 2.5, "many", "3", None])
def test_a_wrong_number_of_clusters_is_refused(
    client: TestClient, dataset: Json, number: object
) -> None:
    answer = client.post("/v1/jobs", json={"dataset_id": dataset["id"], "n_clusters": number})
    assert answer.status_code == 422
    assert {error["field"] for error in answer.json()["errors"]} == {"n_clusters"}


def test_a_job_is_accepted(client: TestClient, dataset: Json) -> None:
    answer = _post(client, dataset, beta=0.7, n_heads=4, steps=20, seed=3)
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["Retry-After"] == "1"
    assert (job["kind"], job["status"], job["dataset_id"]) == ("cluster", "queued", dataset["id"])
    assert job["progress"]["stages"] == ["embed", "mine", "train", "evaluate", "register"]
    assert job["config"]["model_name"] == "cats-dogs"
    assert job["config"]["backbone"] == "efficientnet_lite0"
    train = job["config"]["train"]
    assert (train["n_clusters"], train["beta"], train["seed"]) == (2, 0.7, 3)
    assert (train["n_heads"], train["steps"], train["epochs"]) == (4, 20, None)
    assert train["n_neighbors"] == 1  # every open choice is made when the job is created
    assert client.get(f"/v1/jobs/{job['id']}").json() == job


def test_the_papers_recipe_and_other_objectives(client: TestClient, dataset: Json) -> None:
    train = _post(client, dataset, recipe="paper", objective="scan").json()["config"]["train"]
    assert (train["n_heads"], train["batch_size"], train["early_stop"]) == (50, 512, False)
    assert train["objective"] == "scan"


def test_a_model_name_may_be_given(client: TestClient, dataset: Json) -> None:
    job = _post(client, dataset, model_name="my.model-1").json()
    assert job["config"]["model_name"] == "my.model-1"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"n_clusters": 5}, "n_clusters"),
        ({"n_clusters": 1}, "n_clusters"),
        ({"n_clusters": "many"}, "n_clusters"),
        ({"n_neighbors": 4}, "n_neighbors"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"beta": 0.5}, "beta"),
        ({"beta": 1.01}, "beta"),
        ({"n_heads": 0}, "n_heads"),
        ({"steps": 0}, "steps"),
        ({"steps": 5, "epochs": 5}, "epochs"),
        ({"seed": -1}, "seed"),
        ({"recipe": "fast"}, "recipe"),
        ({"objective": "kmeans"}, "objective"),
        ({"backbone": "resnet"}, "backbone"),
        ({"backbone": "timm:no_such_model"}, "backbone"),
        ({"backbone": "timm:resnet18@/no/such/file.pth"}, "backbone"),
        ({"backbone": "open_clip:ViT-B-32/no_such_weights"}, "backbone"),
        ({"model_name": "Not A Name"}, "model_name"),
        ({"n_cluster": 2}, "n_cluster"),
        ({"kind": "ingest"}, "kind"),
        ({"priority": 101}, "priority"),
        ({"priority": -101}, "priority"),
        ({"webhook_url": "https://example.org/"}, "webhook_url"),
        ({"dataset_id": None}, "dataset_id"),
    ],
)
def test_an_invalid_request_names_its_field(
    client: TestClient, dataset: Json, changes: Json, field: str
) -> None:
    answer = _post(client, dataset, **changes)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert [job["kind"] for job in client.get("/v1/jobs").json()["data"]] == ["ingest"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff\xfe"])
def test_an_invalid_body(client: TestClient, body: bytes) -> None:
    answer = client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_an_unknown_dataset(client: TestClient) -> None:
    answer = client.post("/v1/jobs", json={"dataset_id": "ds_none", "n_clusters": 2})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_dataset_that_is_not_ready(client: TestClient) -> None:
    job = upload(client, {"a.png": png_bytes()})
    body = {"dataset_id": job["dataset_id"], "n_clusters": 2}
    answer = client.post("/v1/jobs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset_not_ready")
    client.post(f"/v1/jobs/{job['id']}:cancel")
    answer = client.post("/v1/jobs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset_not_ready")


def test_a_waiting_job_is_cancelled_at_once(client: TestClient) -> None:
    job = upload(client, {"a.png": png_bytes()})
    answer = client.post(f"/v1/jobs/{job['id']}:cancel")
    assert answer.status_code == 202
    assert answer.json()["status"] == "cancelled"
    assert answer.json()["finished_at"] is not None
    assert client.get(f"/v1/datasets/{job['dataset_id']}").json()["error"]["code"] == "cancelled"
    assert client.post(f"/v1/jobs/{job['id']}:cancel").status_code == 202  # once more is no harm


def test_a_running_job_is_cancelled(client: TestClient, runtime: Runtime) -> None:
    job = upload(client, {"a.png": png_bytes()})
    with runtime.db.write() as session:
        assert claim(session, job["id"], worker="w", lease_seconds=60) is not None
    answer = client.post(f"/v1/jobs/{job['id']}:cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelling")


def test_a_finished_job_cannot_be_cancelled(client: TestClient, dataset: Json) -> None:
    job = client.get("/v1/jobs").json()["data"][0]
    answer = client.post(f"/v1/jobs/{job['id']}:cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "job_finished")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", ":cancel"),
        ("POST", ":retry"),
        ("GET", "/events"),
        ("GET", "/logs"),
        ("GET", "/curves"),
    ],
)
def test_an_unknown_job(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, f"/v1/jobs/job_none{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_jobs_are_listed_by_kind_status_and_dataset(client: TestClient, dataset: Json) -> None:
    cluster = _post(client, dataset).json()
    other = upload(client, {"a.png": png_bytes()})

    def listed(**params: str) -> list[str]:
        return [job["id"] for job in client.get("/v1/jobs", params=params).json()["data"]]

    assert listed()[:2] == [other["id"], cluster["id"]]
    assert listed(status="queued") == [other["id"], cluster["id"]]
    assert listed(status="queued", dataset_id=dataset["id"]) == [cluster["id"]]
    assert listed(status="failed") == []
    assert listed(kind="cluster") == [cluster["id"]]
    assert listed(kind="ingest", status="queued") == [other["id"]]
    assert listed(kind="ingest", dataset_id=other["dataset_id"]) == [other["id"]]
    assert listed(kind="map") == []
    for query in ("status=done", "kind=train"):
        assert client.get(f"/v1/jobs?{query}").status_code == 422


def test_the_remaining_time_follows_from_the_rate(client: TestClient, runtime: Runtime) -> None:
    from app.core.jobs.lifecycle import Progress, heartbeat

    job = upload(client, {"a.png": png_bytes()})
    with runtime.db.write() as session:
        claim(session, job["id"], worker="w", lease_seconds=60)
        progress = Progress("ingest", 25, 100, failed=2, rate=5.0)
        heartbeat(session, job["id"], 1, lease_seconds=60, progress=progress)
    shown = client.get(f"/v1/jobs/{job['id']}").json()
    assert shown["progress"]["eta_seconds"] == 15.0
    assert shown["counts"] == {"total": 100, "completed": 25, "failed": 2, "skipped": 0}
    with runtime.db.write() as session:
        error = {"code": "x", "detail": "y"}
        finish(session, job["id"], 1, status="failed", error=error)
    shown = client.get(f"/v1/jobs/{job['id']}").json()
    assert shown["progress"]["eta_seconds"] is None
    assert shown["error"] == error
