"""Without its bucket the API responds with 503 and loses no data."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import upload, work_on
from tests.buckets import new_bucket
from tests.conftest import MakeClient, MakeSettings
from tests.images import ZIP, jpeg_bytes, zip_of

_ARCHIVE = zip_of({"a.jpg": jpeg_bytes()})
_NOBODY = {"s3_endpoint": "http://127.0.0.1:9"}
_TUS = {"Tus-Resumable": "1.0.0"}

Client = Callable[..., TestClient]


@pytest.fixture
def client_of(make_settings: MakeSettings, make_client: MakeClient, s3_url: str) -> Client:
    """The API with one bucket and database; with `gone`, the bucket cannot be reached."""
    bucket = new_bucket(s3_url)
    return lambda *, gone=False: make_client(make_settings(**bucket | (_NOBODY if gone else {})))


def _check(answer: Any) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert answer.headers["Retry-After"]
    assert "127.0.0.1" not in answer.text


def test_an_upload_is_refused_as_a_whole(client_of: Client) -> None:
    client = client_of(gone=True)
    _check(client.post("/v1/datasets", content=_ARCHIVE, headers=ZIP))
    assert client.get("/v1/datasets").json()["data"] == []


def test_reads_of_files_that_are_not_cached_get_503(client_of: Client) -> None:
    client = client_of()
    runtime: Runtime = client.app.state.runtime  # type: ignore[attr-defined]
    job = upload(client, {"a.jpg": jpeg_bytes(), "b.jpg": jpeg_bytes("blue")})
    work_on(runtime, job["id"])
    one, other = client.get(f"/v1/datasets/{job['dataset_id']}/images").json()["data"]
    assert client.get(f"/v1/images/{one['id']}/content").status_code == 200
    client = client_of(gone=True)
    assert client.get(f"/v1/images/{one['id']}/content").content == jpeg_bytes()  # from its copy
    for path in ("content", "thumbnail"):
        _check(client.get(f"/v1/images/{other['id']}/{path}"))


def test_a_resumable_upload_stays_on_the_local_disk(client_of: Client) -> None:
    client, half = client_of(), len(_ARCHIVE) // 2
    length = {"Upload-Length": str(len(_ARCHIVE))}
    url = client.post("/v1/uploads", headers=_TUS | length).headers["Location"]
    piece = _TUS | {"Content-Type": "application/offset+octet-stream"}
    client.patch(url, content=_ARCHIVE[:half], headers=piece | {"Upload-Offset": "0"})
    client = client_of(gone=True)
    rest = client.patch(url, content=_ARCHIVE[half:], headers=piece | {"Upload-Offset": str(half)})
    _check(rest)
    assert client.head(url, headers=_TUS).headers["Upload-Offset"] == str(len(_ARCHIVE))
    source = {"source": {"type": "upload", "upload_id": url.rpartition("/")[2]}}
    _check(client.post("/v1/datasets", json=source))
    assert client_of().post("/v1/datasets", json=source).status_code == 202


def test_readiness_reports_the_storage(client_of: Client) -> None:
    answer = client_of(gone=True).get("/readyz")
    assert answer.status_code == 503
    found = answer.json()["checks"]["storage"]
    assert found["status"] == "failed"
    assert "TEMI_STORAGE_URL" in found["hint"]
