"""Each request writes a log line with its ids, and its jobs have the ids, too."""

import json
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.core.platform.tables import Job
from app.core.runtime import Runtime
from app.main import create_app
from tests.api.conftest import upload
from tests.conftest import MakeSettings
from tests.images import png_bytes


@pytest.fixture
def app(make_settings: MakeSettings) -> FastAPI:
    app = create_app(make_settings(log_format="json"))

    @app.get("/broken/{place}")
    def broken(place: str) -> None:
        raise RuntimeError("a bug")

    return app


@pytest.fixture
def client(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)  # the API moves it
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_request_writes_a_log_line(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    client.get("/v1/datasets/none?key=secret", headers={"X-Request-ID": "mine"})
    (line,) = _lines(capsys)
    assert (line["event"], line["request_id"], line["tenant"]) == ("request", "mine", "default")
    assert (line["method"], line["status"]) == ("GET", 404)
    assert (line["route"], line["path"]) == ("/v1/datasets/{dataset_id}", "/v1/datasets/none")
    assert "secret" not in json.dumps(line)


def test_probes_write_no_log_line(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        client.get(path)
    assert _lines(capsys) == []


def test_an_unexpected_error_is_logged_with_its_request(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = client.get("/broken/here", headers={"X-Request-ID": "mine"})
    assert (answer.status_code, answer.json()["request_id"]) == (500, "mine")
    lines = {line["event"]: line for line in _lines(capsys)}
    assert {line["request_id"] for line in lines.values()} == {"mine"}
    assert lines["request"]["status"] == 500
    assert "RuntimeError: a bug" in lines["unexpected_error"]["exception"]


def test_log_context_does_not_leak_between_requests(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    client.get("/v1/datasets")
    client.get("/no/such/path")
    first, second = _lines(capsys)
    assert first["request_id"] != second["request_id"]
    assert "tenant" not in second  # no key was required


def test_a_job_stores_its_request_id(client: TestClient, runtime: Runtime) -> None:
    client.headers["X-Request-ID"] = "the-upload"
    job_id = upload(client, {"a.png": png_bytes()})["id"]
    with runtime.db.read() as session:
        job = session.get_one(Job, job_id)
    assert (job.request_id, job.traceparent) == ("the-upload", None)
