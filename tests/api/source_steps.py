"""Helpers for the tests of sources."""

from typing import Any

from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import Json, work_on

CSV = {"Content-Type": "text/csv"}
JSON_LINES = {"Content-Type": "application/x-ndjson; charset=utf-8"}


def ingest(client: TestClient, runtime: Runtime, **request: Any) -> Json:
    """Sends a request and runs its job; returns the finished job."""
    answer = client.post("/v1/datasets", **request)
    assert answer.status_code == 202, answer.text
    work_on(runtime, answer.json()["id"])
    job: Json = client.get(f"/v1/jobs/{answer.json()['id']}").json()
    return job


def shown_images(client: TestClient, job: Json) -> list[Json]:
    data: list[Json] = client.get(f"/v1/datasets/{job['dataset_id']}/images").json()["data"]
    return data


def shown_issues(client: TestClient, job: Json) -> list[tuple[str, str]]:
    data = client.get(f"/v1/datasets/{job['dataset_id']}/issues").json()["data"]
    return [(issue["name"], issue["code"]) for issue in data]


def refused(client: TestClient, status: int, code: str, **request: Any) -> Json:
    answer = client.post("/v1/datasets", **request)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert client.get("/v1/datasets").json()["data"] == []
    problem: Json = answer.json()
    return problem
