"""The audit log has one entry for each request that changed data."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.platform.tables import AuditEntry, Dataset
from app.core.runtime import Runtime
from tests.api.conftest import upload, work_on
from tests.images import ZIP, png_bytes, zip_of
from tests.keys import bearer, make_key


@pytest.fixture
def key_id(any_client: TestClient, any_runtime: Runtime) -> str:
    """Creates a key and makes the client send it."""
    found, text = make_key(any_runtime, name="phone", scopes=["admin"])
    any_client.headers |= bearer(text)
    return found


def _entries(client: TestClient, **params: str) -> list[dict[str, Any]]:
    answer = client.get("/v1/audit", params=params)
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()["data"]
    return entries


def test_a_change_writes_one_entry(
    any_client: TestClient, any_runtime: Runtime, key_id: str
) -> None:
    job = upload(any_client, {"a.png": png_bytes("red")})
    (entry,) = _entries(any_client)
    assert entry["method"] == "POST"
    assert entry["route"] == entry["path"] == "/v1/datasets"
    assert (entry["key_id"], entry["key_name"]) == (key_id, "phone")
    work_on(any_runtime, job["id"])
    assert len(_entries(any_client)) == 1  # what a worker writes is no request's doing

    path = f"/v1/datasets/{job['dataset_id']}"
    answer = any_client.patch(path, json={"name": "new"}, headers={"X-Request-ID": "r-1"})
    assert answer.status_code == 200
    newest = _entries(any_client)[0]
    assert (newest["route"], newest["path"]) == ("/v1/datasets/{dataset_id}", path)
    assert newest["request_id"] == "r-1"
    assert any_client.delete(path).status_code == 204
    assert [entry["method"] for entry in _entries(any_client)] == ["DELETE", "PATCH", "POST"]


def test_reads_and_failed_requests_write_no_entry(any_client: TestClient, key_id: str) -> None:
    any_client.get("/v1/datasets")
    any_client.delete("/v1/datasets/none")
    any_client.post("/v1/jobs", json={"dataset_id": "none", "n_clusters": 2})
    any_client.post("/v1/datasets", content=b"no archive", headers=ZIP, params={"name": "x" * 300})
    any_client.get("/v1/audit")
    assert _entries(any_client) == []


def test_requests_without_effect_write_no_entry(any_client: TestClient, key_id: str) -> None:
    job = upload(any_client, {"a.png": png_bytes("red")})
    assert any_client.post(f"/v1/jobs/{job['id']}:cancel").status_code == 202
    before = _entries(any_client)
    assert any_client.post(f"/v1/jobs/{job['id']}:cancel").status_code == 202
    assert _entries(any_client) == before


def test_a_repeated_request_writes_no_entry(any_client: TestClient, key_id: str) -> None:
    body, headers = zip_of({"a.png": png_bytes("red")}), {"Idempotency-Key": "once"}
    answers = [
        any_client.post("/v1/datasets", content=body, headers=headers | ZIP) for _ in range(2)
    ]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert len(_entries(any_client)) == 1


def test_entry_and_change_are_one_transaction(
    any_client: TestClient, any_runtime: Runtime, key_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(any_client, {"a.png": png_bytes("red")})

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("after the change, before the commit")

    monkeypatch.setattr("app.api.schemas.Dataset.of", broken)
    with pytest.raises(RuntimeError):
        any_client.patch(f"/v1/datasets/{job['dataset_id']}", json={"name": "new"})
    with any_runtime.db.read() as session:
        assert session.scalars(select(Dataset.name)).all() == ["untitled"]
        assert session.scalars(select(AuditEntry.method)).all() == ["POST"]


def test_pages_and_filters(any_client: TestClient, any_runtime: Runtime, key_id: str) -> None:
    other, text = make_key(any_runtime, name="other", scopes=["write"])
    made = [any_client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}) for _ in range(3)]
    assert {answer.status_code for answer in made} == {201}
    upload_headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "5"}
    any_client.post("/v1/uploads", headers={**upload_headers, **bearer(text)})

    first = any_client.get("/v1/audit", params={"limit": 2}).json()
    rest = any_client.get("/v1/audit", params={"cursor": first["next_cursor"]}).json()
    entries = first["data"] + rest["data"]
    assert [entry["key_name"] for entry in entries] == ["other", "phone", "phone", "phone"]
    assert [entry["id"] for entry in _entries(any_client, key_id=other)] == [entries[0]["id"]]
    since = entries[1]["at"]
    assert _entries(any_client, since=since) == [e for e in entries if e["at"] >= since]
    assert _entries(any_client, since="2999-01-01T00:00:00Z") == []
    assert any_client.get("/v1/audit", params={"since": "2026-01-01"}).status_code == 422


def test_a_tenant_sees_only_its_own_entries(
    any_client: TestClient, any_runtime: Runtime, key_id: str
) -> None:
    any_client.post("/v1/keys", json={"name": "k", "scopes": ["read"]})
    _, text = make_key(any_runtime, tenant="b", scopes=["admin"])
    assert any_client.get("/v1/audit", headers=bearer(text)).json()["data"] == []
