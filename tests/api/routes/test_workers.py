"""All tenants see the workers; only the owner sees the job."""

from fastapi.testclient import TestClient

from app.core.jobs.workers import Identity, record_heartbeat
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.api.conftest import upload
from tests.images import jpeg_bytes


def record_heartbeat_of(runtime: Runtime, name: str, job_id: str | None = None) -> None:
    host, pid = name.split(":")
    who = Identity(
        name=name, host=host, pid=int(pid), takes=("gpu",), device="a GPU", version="0.1.0"
    )
    with runtime.db.write() as session:
        record_heartbeat(session, who, job_id=job_id, stage="embed" if job_id else None)


def test_workers_are_listed(any_client: TestClient, any_runtime: Runtime) -> None:
    assert any_client.get("/v1/workers").json()["data"] == []
    ours = upload(any_client, {"a.jpg": jpeg_bytes()})["id"]
    theirs = upload(any_client, {"b.jpg": jpeg_bytes("blue")})["id"]
    with any_runtime.db.write() as session:
        session.get_one(Job, theirs).tenant = "another"
    for name, job_id in (("c:3", theirs), ("a:1", None), ("b:2", ours)):
        record_heartbeat_of(any_runtime, name, job_id)

    found = any_client.get("/v1/workers").json()["data"]

    assert [(w["name"], w["busy"], w["job_id"], w["stage"]) for w in found] == [
        ("a:1", False, None, None),
        ("b:2", True, ours, "embed"),
        ("c:3", True, None, None),  # another tenant's job
    ]
    assert (found[0]["host"], found[0]["pid"]) == ("a", 1)
    assert (found[0]["takes"], found[0]["device"]) == (["gpu"], "a GPU")
    assert found[0]["seen_at"] >= found[0]["started_at"]


def test_workers_are_paginated(any_client: TestClient, any_runtime: Runtime) -> None:
    for name in ("a:1", "b:2", "c:3"):
        record_heartbeat_of(any_runtime, name)
    first = any_client.get("/v1/workers", params={"limit": 2}).json()
    assert first["has_more"]
    rest = any_client.get("/v1/workers", params={"cursor": first["next_cursor"]}).json()
    assert [worker["name"] for worker in first["data"] + rest["data"]] == ["a:1", "b:2", "c:3"]
