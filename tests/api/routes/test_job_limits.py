"""Limits of a tenant: unfinished jobs and memory of a training."""

from typing import Any

from fastapi.testclient import TestClient

from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Job
from app.core.runtime import Runtime
from tests.api.conftest import Json, upload
from tests.conftest import MakeClient
from tests.images import ZIP, png_bytes, zip_of
from tests.keys import bearer, make_key

_PHOTOS = {f"{color}.png": png_bytes(color) for color in ("red", "green")}
_ATTACK = {"n_heads": 200, "n_clusters": 25_000, "steps": 1_000_000, "priority": 100}


def _post(client: TestClient, dataset: Json, **changes: Any) -> Any:
    return client.post("/v1/jobs", json={"dataset_id": dataset["id"], "n_clusters": 2} | changes)


def _grow(runtime: Runtime, dataset: Json, count: int = 1_000_000) -> None:
    with runtime.db.write() as session:
        session.get_one(Dataset, dataset["id"]).image_count = count


def limited(settings: Settings, most: int) -> Settings:
    return settings.model_copy(update={"max_open_jobs": most})


def _refused(answer: Any) -> None:
    assert answer.status_code == 429, answer.text
    assert answer.json()["code"] == "too_many_jobs"
    assert int(answer.headers["Retry-After"]) > 0


def test_a_job_has_a_memory_estimate(client: TestClient, dataset: Json) -> None:
    small = _post(client, dataset).json()
    large = _post(client, dataset, n_heads=100).json()
    assert 0 < small["estimate"]["memory_bytes"] < large["estimate"]["memory_bytes"]
    sweep = client.post(
        "/v1/jobs",
        json={"kind": "sweep", "dataset_id": dataset["id"], "n_clusters": 2, "values": [0.6]},
    )
    assert sweep.json()["estimate"] == small["estimate"]
    exported = client.post("/v1/jobs", json={"kind": "map", "dataset_id": dataset["id"]}).json()
    assert exported["estimate"] is None


def test_a_training_beyond_the_memory_limit_is_refused(
    client: TestClient, runtime: Runtime, dataset: Json
) -> None:
    _grow(runtime, dataset)
    before = client.get("/v1/jobs").json()["data"]
    answer = _post(client, dataset, **_ATTACK)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "job_too_large"
    assert [error["field"] for error in problem["errors"]] == ["n_heads", "n_clusters"]
    assert "TEMI_MAX_JOB_BYTES" in problem["detail"]
    assert "bytes" in problem["detail"]
    assert client.get("/v1/jobs").json()["data"] == before
    assert _post(client, dataset, n_clusters=25_000).status_code == 202


def test_a_sweep_over_too_many_clusters_is_refused(
    client: TestClient, runtime: Runtime, dataset: Json
) -> None:
    _grow(runtime, dataset)
    body = {"kind": "sweep", "dataset_id": dataset["id"], "parameter": "n_clusters"}
    answer = client.post("/v1/jobs", json=body | {"values": [10, 25_000], "n_heads": 200})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["n_heads", "values"]


def test_epochs_are_limited_like_steps(client: TestClient, runtime: Runtime, dataset: Json) -> None:
    _grow(runtime, dataset)
    answer = _post(client, dataset, epochs=100_000)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["epochs"]
    assert _post(client, dataset, epochs=100).status_code == 202


def test_unfinished_jobs_per_tenant_are_limited(
    make_client: MakeClient, runtime: Runtime, settings: Settings
) -> None:
    client = make_client(limited(settings, 2))
    first, second = (upload(client, _PHOTOS) for _ in range(2))
    _refused(client.post("/v1/datasets", content=zip_of(_PHOTOS), headers=ZIP))
    with runtime.db.write() as session:
        dataset = session.get_one(Dataset, first["dataset_id"])
        dataset.status, dataset.image_count = "ready", 5
    body = {"kind": "map", "dataset_id": first["dataset_id"]}
    _refused(client.post("/v1/jobs", json=body))
    assert client.post(f"/v1/jobs/{second['id']}:cancel").status_code == 202
    assert client.post("/v1/jobs", json=body).status_code == 202
    _refused(client.post(f"/v1/jobs/{second['id']}:retry"))


def test_a_repeated_request_gets_its_first_response_at_the_limit(
    make_client: MakeClient, settings: Settings
) -> None:
    client = make_client(limited(settings, 1))
    headers = {"Idempotency-Key": "one"}
    body = zip_of(_PHOTOS)
    first = client.post("/v1/datasets", content=body, headers=headers | ZIP)
    again = client.post("/v1/datasets", content=body, headers=headers | ZIP)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()


def test_another_tenant_has_its_own_limit(
    make_client: MakeClient, runtime: Runtime, settings: Settings
) -> None:
    client = make_client(limited(settings, 1))
    for tenant in ("a", "b"):
        _, text = make_key(runtime, scopes=["read", "write"], tenant=tenant)
        client.headers |= bearer(text)
        upload(client, _PHOTOS)
        _refused(client.post("/v1/datasets", content=zip_of(_PHOTOS), headers=ZIP))
    with runtime.db.read() as session:
        assert {job.tenant for job in session.query(Job)} == {"a", "b"}
