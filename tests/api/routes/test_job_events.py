"""Following a job by server-sent events."""

import json
from collections.abc import Callable, Iterable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.api.routes import jobs as routes
from app.core.jobs.lifecycle import Progress, claim, finish, heartbeat
from app.core.platform.db import Database
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.api.conftest import Json, upload
from tests.images import png_bytes


def _events(text: str) -> list[Json]:
    blocks = [block for block in text.replace("\r\n", "\n").split("\n\n") if "data:" in block]
    lines = [[line.partition(": ") for line in block.split("\n") if line] for block in blocks]
    events = [{name: value for name, _, value in block} for block in lines]
    return [event | {"data": json.loads(event["data"])} for event in events]


def _follow(client: TestClient, job_id: str, last: str | None = None) -> list[Json]:
    headers = {"Last-Event-ID": last} if last else {}
    answer = client.get(f"/v1/jobs/{job_id}/events", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    return _events(answer.text)


def _change_before_each_look(
    monkeypatch: pytest.MonkeyPatch, steps: Iterable[Callable[[Session], object]]
) -> None:
    """So that the stream sees every state of the job, however slow a poll is."""
    look, waiting = routes._reload, iter(steps)

    def change_and_look(db: Database, job_id: str) -> Job | None:
        if step := next(waiting, None):
            with db.write() as session:
                step(session)
        return look(db, job_id)

    monkeypatch.setattr(routes, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(routes, "_reload", change_and_look)


def test_a_running_job_is_followed_to_its_end(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(client, {"a.png": png_bytes()})
    job_id, progress = job["id"], Progress("ingest", 1, 2, rate=1.0)
    steps: list[Callable[[Session], object]] = [
        lambda session: claim(session, job_id, worker="w", lease_seconds=60),
        lambda session: heartbeat(session, job_id, 1, lease_seconds=60, progress=progress),
        lambda session: finish(session, job_id, 1, status="succeeded", result={"n": 1}),
    ]
    _change_before_each_look(monkeypatch, steps)
    events = _follow(client, job_id)
    assert [(e["event"], e["data"]["status"]) for e in events] == [
        ("status", "queued"),
        ("status", "running"),
        ("progress", "running"),
        ("status", "succeeded"),
    ]
    ids = [int(event["id"]) for event in events]
    assert ids == sorted(set(ids))
    assert events[2]["data"]["progress"]["completed"] == 1
    assert events[-1]["data"] == client.get(f"/v1/jobs/{job['id']}").json()


def test_a_finished_job_gives_one_event(client: TestClient, dataset: Json) -> None:
    job = client.get("/v1/jobs").json()["data"][0]
    events = _follow(client, job["id"])
    assert [(e["event"], e["data"]) for e in events] == [("status", job)]


def test_last_event_id_skips_older_events(client: TestClient, dataset: Json) -> None:
    job = client.get("/v1/jobs").json()["data"][0]
    last = _follow(client, job["id"])[-1]["id"]
    assert len(_follow(client, job["id"], str(int(last) - 1))) == 1


def test_after_the_last_event_an_event_source_stops(client: TestClient, dataset: Json) -> None:
    """It connects again after every other answer."""
    job = client.get("/v1/jobs").json()["data"][0]
    last = _follow(client, job["id"])[-1]["id"]
    for seen in (last, str(int(last) + 1)):
        answer = client.get(f"/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": seen})
        assert (answer.status_code, answer.content) == (204, b"")
    missing = client.get("/v1/jobs/job_1/events", headers={"Last-Event-ID": last})
    assert missing.status_code == 404


def test_an_invalid_last_event_id_is_ignored(client: TestClient, dataset: Json) -> None:
    job = client.get("/v1/jobs").json()["data"][0]
    for last in ("abc", "-1", "1.5", "²"):
        headers = {b"Last-Event-ID": last.encode()}
        answer = client.get(f"/v1/jobs/{job['id']}/events", headers=headers)
        assert len(_events(answer.text)) == 1


def test_an_unknown_last_event_id_is_ignored(client: TestClient, runtime: Runtime) -> None:
    """A number may be too long to be parsed."""
    job = upload(client, {"a.png": png_bytes()})
    with runtime.db.write() as session:
        claim(session, job["id"], worker="w", lease_seconds=60)
        finish(session, job["id"], 1, status="succeeded", result={})
    for last in ("9" * 5000, "x", "-1", "1.5"):
        events = _follow(client, job["id"], last)
        assert [event["data"]["status"] for event in events] == ["succeeded"]
