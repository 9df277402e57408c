"""With TEMI_LOG_FORMAT=json every line of every process is one JSON object with its ids."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Service
from tests.waiting import wait_until

_KEY = "0123456789-not-a-real-key"
Line = dict[str, Any]


def _lines(service: Service) -> list[Line]:
    """Returns all complete lines; fails on one that is not JSON."""
    text = service.log.read_text()
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _wait_for(service: Service, event: str, **fields: Any) -> Line:
    def found() -> Line | None:
        for line in _lines(service):
            if line["event"] == event and fields.items() <= line.items():
                return line
        return None

    what = f"a line {event} {fields}"
    line = wait_until(found, what, pause=0.1, details=service.log.read_text)
    assert line is not None
    return line


def test_every_line_is_json_with_ids(start_service: Any, shapes_zip: Path) -> None:
    settings = {"TEMI_LOG_FORMAT": "json", "TEMI_API_KEY": _KEY}
    with start_service(**settings) as service:
        http = service.http(headers={"Authorization": f"Bearer {_KEY}"})
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
        with service.http() as http:
            http.get("/v1/datasets")
        assert {line["level"] for line in _lines(service)} <= {"warning", "error"}
