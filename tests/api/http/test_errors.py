"""Errors are problem+json; each request has an id."""

import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.exc import InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.platform import errors as core
from app.core.platform.settings import Settings
from tests.conftest import MakeClient, MakeSettings
from tests.images import ZIP
from tests.servers import free_port


def _expect_problem(answer: Any, status: int, code: str, path: str) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert set(body) == {
        *("type", "title", "status", "detail", "instance", "code", "errors", "request_id")
    }
    assert (body["status"], body["code"], body["instance"]) == (status, code, path)
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert body["detail"]
    assert body["title"]
    return body


def test_an_unknown_row(client: TestClient) -> None:
    path = "/v1/datasets/ds_none"
    body = _expect_problem(client.get(path), 404, "not_found", path)
    assert "ds_none" in body["detail"]


def test_an_unknown_path(client: TestClient) -> None:
    _expect_problem(client.get("/v1/nothing"), 404, "not_found", "/v1/nothing")


def test_an_unsupported_method(client: TestClient) -> None:
    answer = client.delete("/v1/jobs")
    _expect_problem(answer, 405, "method_not_allowed", "/v1/jobs")
    assert answer.headers["Allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/datasets", "GET, POST"),
        ("PUT", "/v1/datasets/ds_1", "GET, PATCH, DELETE"),
        ("POST", "/v1/jobs/job_1", "GET, DELETE"),
        ("GET", "/v1/uploads", "OPTIONS, POST"),
        ("POST", "/v1/uploads/up_1", "HEAD, PATCH, DELETE"),
        ("POST", "/openapi.json", "GET, HEAD"),
    ],
)
def test_a_405_lists_all_methods_of_its_path(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    _expect_problem(answer, 405, "method_not_allowed", path)
    assert answer.headers["Allow"] == allowed
    assert method in answer.json()["detail"]
    assert allowed in answer.json()["detail"]


def test_fields_are_named(client: TestClient) -> None:
    answer = client.post("/v1/jobs", json={"n_clusters": 0})
    body = _expect_problem(answer, 422, "invalid_request", "/v1/jobs")
    assert {error["field"] for error in body["errors"]} == {"dataset_id", "n_clusters"}
    assert all(error["message"] for error in body["errors"])


def test_a_body_that_is_too_large(make_client: MakeClient, make_settings: MakeSettings) -> None:
    client = make_client(make_settings(max_body_bytes=10))
    answer = client.post("/v1/datasets", content=bytes(11), headers=ZIP)
    _expect_problem(answer, 413, "body_too_large", "/v1/datasets")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (core.StorageFull("full"), 507, "storage_full"),
        (core.QueueFull("busy"), 429, "queue_full"),
        (core.ModelIntegrity("changed"), 503, "model_integrity"),
        (core.PredictorUnavailable("gone"), 503, "predictor_unavailable"),
        (core.UnsupportedFormat("svg"), 415, "unsupported_format"),
        (core.ImageTooLarge("huge"), 422, "image_too_large"),
        (core.ArchiveUnsafePath("up"), 422, "archive_unsafe_path"),
        (PoolTimeout("every connection waits"), 503, "database_unavailable"),
        (InterfaceError("SELECT 1", {}, Exception("closed")), 503, "database_unavailable"),
        (RuntimeError("a secret"), 500, "internal_error"),
    ],
)
def test_each_error_has_its_status(
    make_client: MakeClient, settings: Settings, error: Exception, status: int, code: str
) -> None:
    client = make_client(settings, raise_server_exceptions=False)

    def fail() -> None:
        raise error

    assert isinstance(client.app, FastAPI)
    client.app.add_api_route("/fail", fail)
    answer = client.get("/fail")
    assert "secret" not in answer.text
    _expect_problem(answer, status, code, "/fail")
    assert ("Retry-After" in answer.headers) == (status in (429, 503))


def test_an_unreachable_database(make_client: MakeClient, make_settings: MakeSettings) -> None:
    url = f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/none"
    client = make_client(make_settings(database_url=url))
    answer = client.get("/v1/datasets")
    _expect_problem(answer, 503, "database_unavailable", "/v1/datasets")
    assert answer.headers["Retry-After"]


def test_a_request_id_is_echoed(client: TestClient) -> None:
    given = "abc-123_x.y"
    answer = client.get("/livez", headers={"X-Request-ID": given})
    assert answer.headers["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "with space", "a" * 101, "<script>", "line\tbreak"])
def test_an_unsafe_request_id_is_replaced(client: TestClient, given: str) -> None:
    answer = client.get("/livez", headers={"X-Request-ID": given})
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-ID"])


def test_every_request_gets_an_id_of_its_own(client: TestClient) -> None:
    assert len({client.get("/livez").headers["X-Request-ID"] for _ in range(5)}) == 5
