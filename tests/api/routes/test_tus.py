"""Resumable uploads: the protocol, a public client, and interruptions."""

import base64
import hashlib
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.datasets.uploads import get_upload
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from app.core.storage.keys import upload_key
from tests.api.conftest import Work
from tests.buckets import any_storage
from tests.conftest import MakeClient, MakeSettings
from tests.images import png_bytes, zip_of

_TUS = {"Tus-Resumable": "1.0.0"}
_PIECE = _TUS | {"Content-Type": "application/offset+octet-stream"}
_ARCHIVE = zip_of({"a.png": png_bytes("red"), "b.png": png_bytes("blue")})


def _create(client: TestClient, length: int, **headers: str) -> str:
    answer = client.post("/v1/uploads", headers=_TUS | {"Upload-Length": str(length)} | headers)
    assert answer.status_code == 201, answer.text
    return answer.headers["Location"]


def _patch(client: TestClient, url: str, offset: int, data: Any, **headers: str) -> Any:
    given = _PIECE | {"Upload-Offset": str(offset)} | headers
    return client.patch(url, content=data, headers=given)


def _offset(client: TestClient, url: str) -> int:
    answer = client.head(url, headers=_TUS)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    return int(answer.headers["Upload-Offset"])


def _refused(answer: Any, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["Tus-Resumable"] == "1.0.0"


def test_the_capabilities_of_the_server(client: TestClient, settings: Settings) -> None:
    answer = client.options("/v1/uploads")
    assert answer.status_code == 204
    assert answer.headers["Tus-Version"] == answer.headers["Tus-Resumable"] == "1.0.0"
    assert "creation-with-upload" in answer.headers["Tus-Extension"].split(",")
    assert answer.headers["Tus-Max-Size"] == str(settings.max_body_bytes)
    assert answer.headers["Tus-Checksum-Algorithm"] == "sha1,sha256"


def test_an_upload_in_chunks_becomes_a_dataset(any_client: TestClient) -> None:
    metadata = f"filename {base64.b64encode(b'a.zip').decode()},empty"
    url = _create(any_client, len(_ARCHIVE), **{"Upload-Metadata": metadata})
    assert _offset(any_client, url) == 0
    for start in range(0, len(_ARCHIVE), 100):
        answer = _patch(any_client, url, start, _ARCHIVE[start : start + 100])
        assert answer.status_code == 204
        assert answer.headers["Upload-Offset"] == str(min(start + 100, len(_ARCHIVE)))
    head = any_client.head(url, headers=_TUS)
    assert head.headers["Upload-Length"] == head.headers["Upload-Offset"] == str(len(_ARCHIVE))
    assert head.headers["Upload-Metadata"] == metadata
    assert parsedate_to_datetime(head.headers["Upload-Expires"]) > datetime.now(UTC)

    body = {"name": "Pieces", "source": {"type": "upload", "upload_id": url.rpartition("/")[2]}}
    job = any_client.post("/v1/datasets", json=body)
    assert job.status_code == 202
    assert job.json()["config"]["source"]["type"] == "archive"
    assert any_client.head(url, headers=_TUS).status_code == 404  # used up
    again = any_client.post("/v1/datasets", json=body)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")


@any_storage
def test_the_images_of_an_upload(client: TestClient, work: Work, runtime: Runtime) -> None:
    url = _create(client, len(_ARCHIVE))
    _patch(client, url, 0, _ARCHIVE)
    source = {"type": "upload", "upload_id": url.rpartition("/")[2]}
    key = {"Idempotency-Key": "k"}
    job = client.post("/v1/datasets", json={"source": source}, headers=key).json()
    work(job["id"])
    assert client.get(f"/v1/datasets/{job['dataset_id']}").json()["image_count"] == 2
    assert not list(runtime.storage.list("uploads"))
    again = client.post("/v1/datasets", json={"source": source}, headers=key)
    assert again.json() == job


@any_storage
def test_an_unfinished_or_bad_upload_is_not_used(client: TestClient, runtime: Runtime) -> None:
    url = _create(client, len(_ARCHIVE))
    _patch(client, url, 0, _ARCHIVE[:50])
    source = {"type": "upload", "upload_id": url.rpartition("/")[2]}
    _refused_source(client, source, 409, "upload_incomplete")
    _patch(client, url, 50, bytes(len(_ARCHIVE) - 50))
    _refused_source(client, source, 422, "archive_invalid")
    assert client.head(url, headers=_TUS).status_code == 404  # it could never be used
    empty = _create(client, 0).rpartition("/")[2]
    _refused_source(client, {"type": "upload", "upload_id": empty}, 422, "archive_invalid")
    assert not list(runtime.storage.list("uploads"))
    assert not list(runtime.settings.staging_dir.glob("*"))
    assert client.get("/v1/datasets").json()["data"] == []


def _refused_source(client: TestClient, source: dict[str, str], status: int, code: str) -> None:
    answer = client.post("/v1/datasets", json={"source": source})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_creation_with_the_first_chunk(client: TestClient) -> None:
    headers = _PIECE | {"Upload-Length": "10"}
    answer = client.post("/v1/uploads", content=b"12345", headers=headers)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "5")
    assert _offset(client, answer.headers["Location"]) == 5


@pytest.mark.parametrize("version", [None, "0.2.2", "1.0.1"])
def test_another_version_is_refused(client: TestClient, version: str | None) -> None:
    url = _create(client, 10)
    headers = {"Tus-Resumable": version} if version else {}
    for answer in (
        client.post("/v1/uploads", headers=headers | {"Upload-Length": "1"}),
        client.patch(url, headers=headers | {"Upload-Offset": "0"}),
        client.delete(url, headers=headers),
    ):
        _refused(answer, 412, "tus_version")
        assert answer.headers["Tus-Version"] == "1.0.0"
    assert client.head(url, headers=headers).status_code == 412


def test_chunks_that_are_refused(client: TestClient) -> None:
    url = _create(client, 10)
    _patch(client, url, 0, b"1234")
    _refused(_patch(client, url, 3, b"x"), 409, "upload_offset")
    _refused(_patch(client, url, 5, b"x"), 409, "upload_offset")
    answer = _patch(client, url, 4, b"x", **{"Content-Type": "application/octet-stream"})
    _refused(answer, 415, "unsupported_media_type")
    _refused(_patch(client, url, 4, b"1234567"), 413, "body_too_large")
    for wrong in ("-1", "x", str(2**63)):
        _refused(_patch(client, url, 0, b"", **{"Upload-Offset": wrong}), 422, "invalid_request")
    assert _offset(client, url) == 4
    unannounced = iter([b"123", b"4567890"])  # no declared length
    _refused(_patch(client, url, 4, unannounced), 413, "body_too_large")
    assert _offset(client, url) <= 10


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 422, "invalid_request"),
        ({"Upload-Length": "-1"}, 422, "invalid_request"),
        ({"Upload-Length": "many"}, 422, "invalid_request"),
        ({"Upload-Defer-Length": "1"}, 422, "invalid_request"),
        ({"Upload-Length": "1001"}, 413, "body_too_large"),
        ({"Upload-Length": "1", "Upload-Metadata": "name not-base64!"}, 422, "invalid_request"),
        ({"Upload-Length": "1", "Upload-Metadata": "a YQ==,a YQ=="}, 422, "invalid_request"),
    ],
)
def test_uploads_that_are_refused(
    make_client: MakeClient,
    make_settings: MakeSettings,
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    client = make_client(make_settings(max_body_bytes=1000))
    _refused(client.post("/v1/uploads", headers=_TUS | headers), status, code)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_chunk_with_a_wrong_checksum_is_not_stored(client: TestClient, algorithm: str) -> None:
    url = _create(client, 10)
    digest = base64.b64encode(hashlib.new(algorithm, b"12345").digest()).decode()
    header = {"Upload-Checksum": f"{algorithm} {digest}"}
    _refused(_patch(client, url, 0, b"12346", **header), 460, "checksum_mismatch")
    assert _offset(client, url) == 0
    assert _patch(client, url, 0, b"12345", **header).status_code == 204
    assert _offset(client, url) == 5
    wrong = {"Upload-Checksum": "md5 AAAA"}
    _refused(_patch(client, url, 5, b"1", **wrong), 422, "invalid_request")


def test_an_upload_is_deleted(client: TestClient, runtime: Runtime) -> None:
    url = _create(client, 10)
    _patch(client, url, 0, b"123")
    assert client.delete(url, headers=_TUS).status_code == 204
    assert client.head(url, headers=_TUS).status_code == 404
    _refused(_patch(client, url, 3, b"4"), 404, "not_found")
    _refused(client.delete(url, headers=_TUS), 404, "not_found")
    assert not runtime.storage.exists(upload_key(url.rpartition("/")[2]))


def test_an_expired_upload_is_not_found(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    client = make_client(make_settings(upload_hours=1e-7))
    url = _create(client, 10)
    time.sleep(0.01)
    assert client.head(url, headers=_TUS).status_code == 404


def test_concurrent_chunks_do_not_mix(
    client: TestClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.datasets.uploads._LOCK_SECONDS", 0.1)
    url = _create(client, 10)
    with runtime.db.read() as session:
        upload = get_upload(session, "default", url.rpartition("/")[2])
    with runtime.uploads.append(upload, 0) as held:
        held.write(b"123")
        _refused(_patch(client, url, 3, b"4"), 423, "upload_locked")
    assert _offset(client, url) == 3


def test_a_full_disk(
    make_client: MakeClient, make_settings: MakeSettings, small_disk: Path
) -> None:
    settings = make_settings()
    full = make_settings(data_dir=small_disk, database_url=settings.sqlalchemy_url)
    client = make_client(full)
    size = 3 * 1024 * 1024
    url = _create(client, size)
    _refused(_patch(client, url, 0, bytes(size)), 507, "storage_full")
    assert 0 <= _offset(client, url) < size
