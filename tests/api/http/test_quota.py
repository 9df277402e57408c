"""A key adds no more data once its tenant has used the quota."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.core.platform.tables import Image
from app.core.runtime import Runtime
from tests.api.conftest import upload, work_on
from tests.core.models.package.archives import packed, parts
from tests.images import ZIP, png_bytes, zip_of
from tests.keys import bearer, make_key

_PHOTOS = {f"{color}.png": png_bytes(color) for color in ("red", "green", "blue")}
_SIZE = sum(len(data) for data in _PHOTOS.values())
_TUS = {"Tus-Resumable": "1.0.0"}


def _use_key(client: TestClient, runtime: Runtime, **options: Any) -> None:
    _, text = make_key(runtime, scopes=["read", "write"], **options)
    client.headers |= bearer(text)


@pytest.fixture
def full(any_client: TestClient, any_runtime: Runtime) -> TestClient:
    """A tenant whose quota was used up by another key."""
    _use_key(any_client, any_runtime)
    work_on(any_runtime, upload(any_client, _PHOTOS)["id"])
    _use_key(any_client, any_runtime, storage_bytes=_SIZE)
    return any_client


def _refused(answer: Any) -> None:
    assert answer.status_code == 429, answer.text
    assert answer.json()["code"] == "quota_exceeded"
    assert int(answer.headers["Retry-After"]) > 0


def test_a_full_quota_refuses_all_additions(full: TestClient) -> None:
    dataset = full.get("/v1/datasets").json()["data"][0]
    assert dataset["bytes"] == _SIZE
    _refused(full.post("/v1/datasets", content=zip_of(_PHOTOS), headers=ZIP))
    _refused(
        full.post(f"/v1/datasets/{dataset['id']}/images", content=zip_of(_PHOTOS), headers=ZIP)
    )
    _refused(full.post("/v1/uploads", headers={**_TUS, "Upload-Length": "1"}))
    assert full.get("/v1/jobs").json()["data"][0]["kind"] == "ingest"
    assert len(full.get("/v1/jobs").json()["data"]) == 1
    # what takes no room goes on, and makes room
    assert full.delete(f"/v1/datasets/{dataset['id']}").status_code == 204
    assert full.post("/v1/uploads", headers={**_TUS, "Upload-Length": "1"}).status_code == 201


def test_another_tenant_has_its_own_quota(full: TestClient, any_runtime: Runtime) -> None:
    _use_key(full, any_runtime, tenant="b", storage_bytes=_SIZE + 2_000)
    job = upload(full, _PHOTOS)
    work_on(any_runtime, job["id"])
    assert full.get(f"/v1/jobs/{job['id']}").json()["status"] == "succeeded"


def test_a_body_whose_length_exceeds_the_quota_is_not_read(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    _use_key(any_client, any_runtime, storage_bytes=1_000)
    _refused(any_client.post("/v1/datasets", content=b"x" * 1_001, headers=ZIP))
    assert not (any_runtime.settings.blob_dir / "uploads").exists()
    _refused(any_client.post("/v1/uploads", headers={**_TUS, "Upload-Length": "1001"}))


def test_uploads_in_progress_count(any_client: TestClient, any_runtime: Runtime) -> None:
    _use_key(any_client, any_runtime, storage_bytes=1_000)
    create = {**_TUS, "Upload-Length": "600"}
    first = any_client.post("/v1/uploads", headers=create)
    assert first.status_code == 201
    _refused(any_client.post("/v1/uploads", headers=create))
    assert any_client.delete(first.headers["Location"], headers=_TUS).status_code == 204
    assert any_client.post("/v1/uploads", headers=create).status_code == 201


def test_an_archive_that_unpacks_beyond_the_quota_fails(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    noise = {f"{i}.png": png_bytes("red", (300 + i, 300)) for i in range(4)}
    packed = zip_of(noise)
    limit = len(packed) + 10
    assert limit < sum(len(data) for data in noise.values())
    _use_key(any_client, any_runtime, storage_bytes=limit)
    job = upload(any_client, noise)
    work_on(any_runtime, job["id"])
    job = any_client.get(f"/v1/jobs/{job['id']}").json()
    assert (job["status"], job["error"]["code"]) == ("failed", "quota_exceeded")
    dataset = any_client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert dataset["status"] == "failed"
    assert dataset["error"]["code"] == "quota_exceeded"
    assert (dataset["image_count"], dataset["bytes"]) == (0, 0)
    with any_runtime.db.read() as session:
        assert session.scalar(select(func.count()).select_from(Image)) == 0


def test_an_append_beyond_the_quota_leaves_the_dataset_unchanged(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    _use_key(any_client, any_runtime, storage_bytes=_SIZE + 900)
    job = upload(any_client, _PHOTOS)
    work_on(any_runtime, job["id"])
    more = {"files": ("large.png", png_bytes("white", (1000, 1000)))}
    assert len(more["files"][1]) > 900
    path = f"/v1/datasets/{job['dataset_id']}"

    def in_chunks() -> Any:  # without a Content-Length
        yield zip_of({"large.png": more["files"][1]})

    added = any_client.post(f"{path}/images", content=in_chunks(), headers=ZIP).json()
    work_on(any_runtime, added["id"])
    assert any_client.get(f"/v1/jobs/{added['id']}").json()["error"]["code"] == "quota_exceeded"
    dataset = any_client.get(path).json()
    assert (dataset["status"], dataset["image_count"], dataset["bytes"]) == ("ready", 3, _SIZE)


def test_a_repeated_request_gets_its_first_response(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    body = zip_of(_PHOTOS)
    _use_key(any_client, any_runtime, storage_bytes=len(body))
    headers = {"Idempotency-Key": "once"}
    job = any_client.post("/v1/datasets", content=body, headers=headers | ZIP).json()
    work_on(any_runtime, job["id"])
    again = any_client.post("/v1/datasets", content=body, headers=headers | ZIP)
    assert (again.status_code, again.json()["id"]) == (202, job["id"])


_MODEL = packed(parts())
_MODEL_BYTES = sum(len(data) for data in parts().values())


def test_an_imported_model_fills_the_quota(any_client: TestClient, any_runtime: Runtime) -> None:
    _use_key(any_client, any_runtime, storage_bytes=_MODEL_BYTES + 3000)
    assert any_client.post("/v1/models:import", content=_MODEL, headers=ZIP).status_code == 201
    _refused(any_client.post("/v1/models:import", content=_MODEL, headers=ZIP))
    _refused(any_client.post("/v1/uploads", headers={**_TUS, "Upload-Length": "3001"}))
    assert any_client.delete("/v1/models/cats").status_code == 204
    assert any_client.post("/v1/models:import", content=_MODEL, headers=ZIP).status_code == 201


def test_a_model_without_a_content_length_counts(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    _use_key(any_client, any_runtime, storage_bytes=_MODEL_BYTES - 1)
    _refused(any_client.post("/v1/models:import", content=iter([_MODEL]), headers=ZIP))
    assert any_client.get("/v1/models").json()["data"] == []
    assert not list(any_runtime.storage.list("models"))


def test_a_repeated_import_gets_its_first_response(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    _use_key(any_client, any_runtime, storage_bytes=len(_MODEL))
    headers = {"Idempotency-Key": "once"}
    for _ in range(2):
        answer = any_client.post("/v1/models:import", content=_MODEL, headers=headers | ZIP)
        assert (answer.status_code, answer.json()["version"]) == (201, 1)
