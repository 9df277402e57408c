"""With TEMI_LOG_FORMAT=json every line of every process is one JSON object with its ids."""

import json
import time
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.conftest import Service

_KEY = "0123456789-not-a-real-key"
Line = dict[str, Any]


def _lines(service: Service) -> list[Line]:
    """All of them; fails on one that is no JSON."""
    return [json.loads(line) for line in service.log.read_text().splitlines()]


def _wait_for(service: Service, event: str, **fields: Any) -> Line:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for line in _lines(service):
            if line["event"] == event and fields.items() <= line.items():
                return line
        time.sleep(0.1)
    raise AssertionError(f"no line {event} {fields}:\n{service.log.read_text()}")


def test_every_line_is_json_and_tells_whose_it_is(start_service: Any, shapes_zip: Path) -> None:
    settings = {"TEMI_LOG_FORMAT": "json", "TEMI_API_KEY": _KEY}
    with start_service(**settings) as service:
        http = httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {_KEY}"})
        headers = {"X-Request-ID": "the-upload", "Content-Type": "application/zip"}
        params = {"name": "shapes", "secret": "not-to-be-logged"}
        with http, shapes_zip.open("rb") as file:
            body = file.read()
            job = http.post("/v1/datasets", params=params, headers=headers, content=body).json()

            asked = _wait_for(service, "request", request_id="the-upload")
            assert asked["level"] == "info"
            assert (asked["method"], asked["status"]) == ("POST", 202)
            assert asked["route"] == asked["path"] == "/v1/datasets"
            assert asked["ms"] > 0
            assert asked["tenant"] == "default"

            of_job = {"job_id": job["id"], "kind": "ingest", "fence": 1, "request_id": "the-upload"}
            _wait_for(service, "job_started", **of_job)
            _wait_for(service, "stage_started", stage="ingest", **of_job)
            ended = _wait_for(service, "stage_ended", stage="ingest", **of_job)
            assert ended["pid"] not in (service.worker().pid, service.api().pid)
            _wait_for(service, "job_ended", status="succeeded", **of_job)

            service.worker().kill()
            _wait_for(service, "child_died", name="worker")
        assert _lines(service)[0]["event"] == "serving"
    text = service.log.read_text()
    assert _KEY not in text
    assert "not-to-be-logged" not in text
    assert all({"timestamp", "level", "event"} <= line.keys() for line in _lines(service))


def test_levels(start_service: Any) -> None:
    with start_service(TEMI_LOG_FORMAT="json", TEMI_LOG_LEVEL="warning") as service:
        httpx.get(f"{service.url}/v1/datasets")
        assert {line["level"] for line in _lines(service)} <= {"warning", "error"}
