"""Following a job by server-sent events."""

import json
import threading
import time
from collections.abc import Callable

from fastapi.testclient import TestClient

from app.core.jobs import Progress, claim, finish, heartbeat
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


def _later(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_a_running_job_is_followed_to_its_end(client: TestClient, runtime: Runtime) -> None:
    job = upload(client, {"a.png": png_bytes()})

    def live() -> None:
        pause = 0.8  # more than one look of the stream
        time.sleep(pause)
        with runtime.db.write() as session:
            claim(session, job["id"], worker="w", lease_seconds=60)
        time.sleep(pause)
        with runtime.db.write() as session:
            progress = Progress("ingest", 1, 2, rate=1.0)
            heartbeat(session, job["id"], 1, lease_seconds=60, progress=progress)
        time.sleep(pause)
        with runtime.db.write() as session:
            finish(session, job["id"], 1, status="succeeded", result={"n": 1})

    thread = _later(live)
    events = _follow(client, job["id"])
    thread.join()
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


def test_a_client_that_comes_back_is_told_only_what_is_newer(
    client: TestClient, dataset: Json
) -> None:
    job = client.get("/v1/jobs").json()["data"][0]
    last = _follow(client, job["id"])[-1]["id"]
    assert _follow(client, job["id"], last) == []
    assert len(_follow(client, job["id"], "1")) == 1


def test_a_senseless_last_event_id_is_the_same_as_none(client: TestClient, dataset: Json) -> None:
    job = client.get("/v1/jobs").json()["data"][0]
    for last in ("abc", "-1", "1.5", "²"):
        headers = {b"Last-Event-ID": last.encode()}
        answer = client.get(f"/v1/jobs/{job['id']}/events", headers=headers)
        assert len(_events(answer.text)) == 1
