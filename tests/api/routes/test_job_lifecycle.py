"""Jobs: log, curves, priority, webhook, retry, deletion."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.jobs.lifecycle import claim, finish
from app.core.jobs.records import add_curve
from app.core.platform.tables import Job, WebhookDelivery
from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering, Work, upload
from tests.conftest import MakeClient, MakeSettings
from tests.images import png_bytes

FILES = {"a.png": png_bytes("red"), "b.png": png_bytes("blue"), "c.png": b"text", "d.txt": b"text"}


def _uploads(runtime: Runtime) -> list[str]:
    return [path.name for path in (runtime.settings.blob_dir / "uploads").iterdir()]


def _fail(runtime: Runtime, job: Json, code: str = "worker_crashed") -> None:
    with runtime.db.write() as session:
        row = claim(session, job["id"], worker="w", lease_seconds=60)
        assert row is not None
        error = {"code": code, "detail": "It died."}
        finish(session, job["id"], row.fence, status="failed", error=error)


def test_the_log_can_be_read_line_by_line(client: TestClient, work: Work) -> None:
    job = upload(client, FILES)
    assert client.get(f"/v1/jobs/{job['id']}/logs").json()["data"] == []
    work(job["id"])
    page = client.get(f"/v1/jobs/{job['id']}/logs").json()
    assert [line["number"] for line in page["data"]] == list(range(1, len(page["data"]) + 1))
    messages = [line["message"] for line in page["data"]]
    assert messages[0] == "Claimed by test (attempt 1)."
    assert "Stage ingest started." in messages
    assert messages[-1] == "Succeeded."
    assert {line["level"] for line in page["data"]} <= {"info", "warning"}
    assert page["data"][0]["at"].startswith("20")
    first = client.get(f"/v1/jobs/{job['id']}/logs", params={"limit": 1}).json()
    rest = client.get(f"/v1/jobs/{job['id']}/logs", params={"cursor": first["next_cursor"]}).json()
    assert first["data"] + rest["data"] == page["data"]
    newer = client.get(f"/v1/jobs/{job['id']}/logs", params={"after": 1}).json()
    assert newer["data"] == page["data"][1:]


def test_curves_are_listed_by_step(client: TestClient, runtime: Runtime, dataset: Json) -> None:
    job = client.post("/v1/jobs", json={"dataset_id": dataset["id"], "n_clusters": 2}).json()
    with runtime.db.write() as session:
        for step in (20, 0, 10):
            add_curve(session, job["id"], step, {"loss": step / 10})
    path = f"/v1/jobs/{job['id']}/curves"
    points = client.get(path).json()["data"]
    assert points == [{"step": step, "values": {"loss": step / 10}} for step in (0, 10, 20)]
    assert client.get(path, params={"after": 10}).json()["data"] == points[2:]
    assert client.get(path, params={"limit": 2}).json()["has_more"]


@pytest.mark.parametrize("query", ["after=-2", "after=x", "after=99999999999", "cursor=eA"])
def test_an_invalid_after_parameter(client: TestClient, query: str) -> None:
    job = upload(client, FILES)
    for part in ("logs", "curves"):
        assert client.get(f"/v1/jobs/{job['id']}/{part}?{query}").status_code == 422


def test_priority_is_shown(client: TestClient, dataset: Json) -> None:
    body = {"dataset_id": dataset["id"], "n_clusters": 2, "priority": 7}
    job = client.post("/v1/jobs", json=body).json()
    assert (job["priority"], job["webhook_url"]) == (7, None)


def test_an_allowed_webhook_is_stored_and_sent(
    make_settings: MakeSettings, make_client: MakeClient, dataset: Json
) -> None:
    settings = make_settings(webhook_hosts="example.org", webhook_secret="whsec_" + "A" * 32)
    client, runtime = make_client(settings), Runtime(settings)
    body: dict[str, Any] = {"dataset_id": dataset["id"], "n_clusters": 2}
    refused = client.post("/v1/jobs", json=body | {"webhook_url": "https://example.com/"})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["webhook_url"]
    job = client.post("/v1/jobs", json=body | {"webhook_url": "https://example.org/x"}).json()
    assert job["webhook_url"] == "https://example.org/x"
    client.post(f"/v1/jobs/{job['id']}:cancel")
    with runtime.db.read() as session:
        message = session.scalars(select(WebhookDelivery)).one()
    assert (message.job_id, message.body["type"]) == (job["id"], "job.cancelled")
    shown = client.get(f"/v1/jobs/{job['id']}").json()
    times = ("created_at", "started_at", "finished_at")
    # the receiver has no use for them
    left_out = {*times, "webhook_url", "progress", "created_by", "estimate"}
    assert {k: v for k, v in message.body["data"].items() if k not in times} == {
        k: v for k, v in shown.items() if k not in left_out
    }
    runtime.db.dispose()


def test_a_cancelled_ingest_can_be_retried(
    client: TestClient, runtime: Runtime, work: Work
) -> None:
    job = upload(client, FILES)
    client.post(f"/v1/jobs/{job['id']}:cancel")
    assert len(_uploads(runtime)) == 1
    answer = client.post(f"/v1/jobs/{job['id']}:retry")
    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert client.get(f"/v1/datasets/{job['dataset_id']}").json()["status"] == "ingesting"
    again = client.post(f"/v1/jobs/{job['id']}:retry")
    assert (again.status_code, again.json()["code"]) == (409, "job_unfinished")
    work(job["id"])
    found = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert (found["status"], found["image_count"], found["issue_count"]) == ("ready", 2, 1)
    assert _uploads(runtime) == []


def test_a_retried_ingest_stores_each_image_once(
    client: TestClient, runtime: Runtime, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: Any, **__: Any) -> None:
        raise MemoryError

    job = upload(client, FILES)
    with monkeypatch.context() as patched:
        patched.setattr("worker.jobs.ingest._complete", no_memory)  # every row is there by then
        work(job["id"])
    failed = client.get(f"/v1/jobs/{job['id']}").json()
    assert failed["error"]["code"] == "out_of_memory"
    client.post(f"/v1/jobs/{job['id']}:retry")
    work(job["id"])
    assert client.get(f"/v1/jobs/{job['id']}").json()["status"] == "succeeded"
    found = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert (found["image_count"], found["issue_count"]) == (2, 1)
    names = [i["name"] for i in client.get(f"/v1/datasets/{found['id']}/images").json()["data"]]
    assert names == ["a.png", "b.png"]


def test_a_job_that_succeeded_is_not_retried(client: TestClient, dataset: Json) -> None:
    job = client.get("/v1/jobs").json()["data"][0]
    answer = client.post(f"/v1/jobs/{job['id']}:retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_retryable")


def test_a_failed_clustering_is_retried_while_its_dataset_is_the_same(
    client: TestClient, runtime: Runtime, dataset: Json
) -> None:
    job = client.post("/v1/jobs", json={"dataset_id": dataset["id"], "n_clusters": 2}).json()
    _fail(runtime, job)
    again = client.post(f"/v1/jobs/{job['id']}:retry").json()
    assert (again["id"], again["status"], again["error"]) == (job["id"], "queued", None)
    assert again["config"] == job["config"]
    _fail(runtime, job)
    with runtime.db.write() as session:
        session.get_one(Job, job["id"]).dataset_fingerprint = "00" * 32
    answer = client.post(f"/v1/jobs/{job['id']}:retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_retryable")


def test_the_results_of_a_deleted_job_stay(
    client: TestClient, runtime: Runtime, dataset: Json, make_clustering: MakeClustering
) -> None:
    clustering = make_clustering(dataset["id"])
    job = client.get("/v1/jobs", params={"status": "queued"}).json()["data"][0]
    open_job = client.delete(f"/v1/jobs/{job['id']}")
    assert (open_job.status_code, open_job.json()["code"]) == (409, "job_unfinished")
    client.post(f"/v1/jobs/{job['id']}:cancel")
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert client.get(f"/v1/jobs/{job['id']}").status_code == 404
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 404
    found = client.get(f"/v1/clusterings/{clustering}")
    assert (found.status_code, found.json()["job_id"]) == (200, None)
    versions = client.get("/v1/models/cats-dogs/versions").json()["data"]
    assert [version["job_id"] for version in versions] == [None]
    assert client.get(f"/v1/datasets/{dataset['id']}").json()["status"] == "ready"
