"""Uploads that the request or the job refuses."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.core.platform.tables import Dataset, Job
from app.core.runtime import Runtime
from tests.api.conftest import Work, upload
from tests.conftest import MakeClient, MakeSettings
from tests.core.datasets.archives import attacks
from tests.images import ZIP, jpeg_bytes, png_bytes, tar_of, zip_of

_BOUNDARY = {"Content-Type": "multipart/form-data; boundary=b"}


def _expect(answer: Any, status: int, code: str, runtime: Runtime) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    with runtime.db.read() as session:
        assert session.scalar(select(func.count()).select_from(Dataset)) == 0
        assert session.scalar(select(func.count()).select_from(Job)) == 0
    leftovers = [path for path in runtime.settings.blob_dir.rglob("*") if path.is_file()]
    assert leftovers == []


def _encrypted() -> bytes:
    data = bytearray(zip_of({"a.png": b"x"}))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + offset] |= 1
    return bytes(data)


def _link() -> bytes:
    out, info = io.BytesIO(), zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    return out.getvalue()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", "archive_invalid", id="nothing"),
        pytest.param(b"hello", "archive_invalid", id="text"),
        pytest.param(jpeg_bytes(), "archive_invalid", id="an image without a form"),
        pytest.param(zip_of({"a.png": b"x"})[:-5], "archive_invalid", id="truncated zip"),
        pytest.param(_encrypted(), "archive_invalid", id="encrypted zip"),
        pytest.param(zip_of({"../a.png": b"x"}), "archive_unsafe_path", id="path outside"),
        pytest.param(zip_of({"/a.png": b"x"}), "archive_unsafe_path", id="absolute path"),
        pytest.param(_link(), "archive_unsafe_path", id="link"),
        pytest.param(zip_of({"folder/": b""}), "dataset_empty", id="only a folder"),
        pytest.param(
            attacks.zip_bomb(zipfile.ZIP_BZIP2, attacks.MiB), "archive_invalid", id="bzip2 in a zip"
        ),
        pytest.param(
            attacks.zip_of_entries(10_000, claimed=1), "archive_too_large", id="a count that lies"
        ),
    ],
)
def test_archives_that_are_refused_at_once(
    client: TestClient, runtime: Runtime, body: bytes, code: str
) -> None:
    _expect(client.post("/v1/datasets", content=body, headers=ZIP), 422, code, runtime)


def test_too_many_members(
    make_client: MakeClient, make_settings: MakeSettings, runtime: Runtime
) -> None:
    client = make_client(make_settings(max_archive_members=2))
    body = zip_of({f"{i}.png": b"x" for i in range(3)})
    _expect(
        client.post("/v1/datasets", content=body, headers=ZIP), 422, "archive_too_large", runtime
    )


def _device() -> bytes:
    out, info = io.BytesIO(), tarfile.TarInfo("device")
    info.type = tarfile.CHRTYPE
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(info)
    return out.getvalue()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(tar_of({"a": png_bytes(), "../b": b"x"}), "archive_unsafe_path", id="path"),
        pytest.param(_device(), "archive_unsafe_path", id="device"),
        pytest.param(tar_of({"a.png": bytes(2000)})[:1000], "archive_invalid", id="truncated tar"),
        pytest.param(
            zstandard.compress(tar_of({"a.png": png_bytes()}))[:-20],
            "archive_invalid",
            id="truncated zstd",
        ),
        pytest.param(tar_of({}, compression="gz"), "dataset_empty", id="empty"),
        pytest.param(attacks.claiming(10**18), "archive_invalid", id="a size that lies"),
        pytest.param(attacks.long_name(2**20), "archive_too_large", id="a long name"),
        pytest.param(zip_of({"a.txt": b"x"}), "dataset_empty", id="no images"),
        pytest.param(zip_of({"a.jpg": b"x", "b.png": b""}), "too_many_bad_files", id="only bad"),
        pytest.param(
            zip_of({"a.png": png_bytes(), "b.jpg": b"x", "c.jpg": b"x"}),
            "too_many_bad_files",
            id="mostly bad",
        ),
    ],
)
def test_archives_that_the_job_refuses(
    client: TestClient, work: Work, body: bytes, code: str
) -> None:
    job = client.post("/v1/datasets", content=body, headers=ZIP).json()
    work(job["id"])
    ended = client.get(f"/v1/jobs/{job['id']}").json()
    assert (ended["status"], ended["error"]["code"]) == ("failed", code)
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert (dataset["status"], dataset["error"]["code"]) == ("failed", code)
    assert dataset["image_count"] == 0
    assert client.get(f"/v1/datasets/{job['dataset_id']}/images").json()["data"] == []


def test_the_issues_of_a_failed_dataset_stay(client: TestClient, work: Work) -> None:
    job = upload(client, {"a.jpg": b"x", "b.png": b"", "c.txt": b"x"})
    work(job["id"])
    issues = client.get(f"/v1/datasets/{job['dataset_id']}/issues").json()["data"]
    assert [issue["name"] for issue in issues] == ["a.jpg", "b.png"]
    assert client.get(f"/v1/datasets/{job['dataset_id']}").json()["skipped"] == {".txt": 1}


def test_a_bomb_fails_the_job(client: TestClient, work: Work) -> None:
    job = upload(client, {f"{i}.png": bytes(1024 * 1024) for i in range(30)})
    work(job["id"])
    assert client.get(f"/v1/jobs/{job['id']}").json()["error"]["code"] == "archive_too_large"


def test_every_kind_of_upload_has_the_same_limit(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    client = make_client(make_settings(max_body_bytes=2 * 1024 * 1024))
    large, larger = bytes(1024 * 1024 + 1), bytes(2 * 1024 * 1024 + 1)
    piece, json = "application/offset+octet-stream", "application/json"
    for method, path, kind, status in (
        ("POST", "/v1/datasets/ds_none/images", "application/zip", 404),
        ("PATCH", "/v1/uploads/up_none", piece, 412),
        ("POST", "/v1/uploads", piece, 412),
        ("PATCH", "/v1/datasets/ds_none", json, 413),
        ("POST", "/v1/datasets/ds_none/images:delete", json, 413),
    ):
        headers = {"Content-Type": kind}
        assert client.request(method, path, content=large, headers=headers).status_code == status
        answer = client.request(method, path, content=larger, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_an_archive_in_an_archive_is_not_opened(client: TestClient, work: Work) -> None:
    job = upload(client, {"a.png": png_bytes(), "inner.zip": zip_of({"b.png": png_bytes()})})
    work(job["id"])
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert (dataset["image_count"], dataset["skipped"]) == (1, {".zip": 1})


def test_a_bomb_in_zstd_fails_the_job(client: TestClient, work: Work) -> None:
    body = zstandard.compress(tar_of({f"{i}.png": bytes(1024 * 1024) for i in range(30)}))
    job = client.post("/v1/datasets", content=body, headers=ZIP).json()
    work(job["id"])
    assert client.get(f"/v1/jobs/{job['id']}").json()["error"]["code"] == "archive_too_large"


@pytest.mark.parametrize("form", [True, False])
def test_a_declared_length_over_the_limit(
    make_client: MakeClient, make_settings: MakeSettings, runtime: Runtime, form: bool
) -> None:
    client = make_client(make_settings(max_body_bytes=1000))
    body: dict[str, Any] = {"content": bytes(1001), "headers": ZIP}
    if form:
        body = {"files": [("files", ("a.png", bytes(1001)))]}
    _expect(client.post("/v1/datasets", **body), 413, "body_too_large", runtime)


def _chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 100):
        yield body[start : start + 100]


@pytest.mark.parametrize("form", [True, False])
def test_received_bytes_over_the_limit(
    make_client: MakeClient, make_settings: MakeSettings, runtime: Runtime, form: bool
) -> None:
    client = make_client(make_settings(max_body_bytes=1000))
    head = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
    body = (head if form else b"PK\x03\x04") + bytes(1000)
    headers = _BOUNDARY if form else ZIP
    answer = client.post("/v1/datasets", content=_chunks(body), headers=headers)
    _expect(answer, 413, "body_too_large", runtime)


def test_a_wrong_content_length_does_not_avoid_the_limit(
    make_client: MakeClient, make_settings: MakeSettings, runtime: Runtime
) -> None:
    client = make_client(make_settings(max_body_bytes=1000))
    answer = client.post(
        "/v1/datasets", content=bytes(1001), headers={"Content-Length": "10"} | ZIP
    )
    _expect(answer, 413, "body_too_large", runtime)


def test_a_json_body_over_the_limit(client: TestClient, runtime: Runtime) -> None:
    body = b'{"dataset_id": "' + b"x" * 1024 * 1024 + b'"}'
    for content in (body, _chunks(body)):
        headers = {"Content-Type": "application/json"}
        answer = client.post("/v1/jobs", content=content, headers=headers)
        _expect(answer, 413, "body_too_large", runtime)


def test_too_many_parts(
    make_client: MakeClient, make_settings: MakeSettings, runtime: Runtime
) -> None:
    client = make_client(make_settings(max_parts=3))
    files = [("files", (f"{i}.png", png_bytes())) for i in range(4)]
    _expect(client.post("/v1/datasets", files=files), 413, "too_many_parts", runtime)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(b"nonsense", _BOUNDARY["Content-Type"], id="no form"),
        pytest.param(b"--b\r\nnonsense", _BOUNDARY["Content-Type"], id="broken header"),
        pytest.param(b"", _BOUNDARY["Content-Type"], id="nothing"),
        pytest.param(b"--b--\r\n", _BOUNDARY["Content-Type"], id="no part"),
        pytest.param(b"--b\r\n", "multipart/form-data", id="no boundary"),
        pytest.param(
            b"--b\r\n", f"multipart/form-data; boundary={'b' * 5000}", id="overlong boundary"
        ),
        pytest.param(
            b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\nvalue\r\n--b--\r\n',
            _BOUNDARY["Content-Type"],
            id="no file",
        ),
        pytest.param(
            b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nhalf',
            _BOUNDARY["Content-Type"],
            id="half a file",
        ),
        pytest.param(
            b"--b\r\nX-Long: " + b"x" * 10_000 + b"\r\n\r\n\r\n--b--\r\n",
            _BOUNDARY["Content-Type"],
            id="overlong header",
        ),
    ],
)
def test_malformed_forms(
    client: TestClient, runtime: Runtime, body: bytes, content_type: str
) -> None:
    answer = client.post("/v1/datasets", content=body, headers={"Content-Type": content_type})
    _expect(answer, 422, "invalid_request", runtime)


def test_an_archive_beside_other_files_in_a_form(client: TestClient, runtime: Runtime) -> None:
    archive = zip_of({"a.png": png_bytes()})
    files = [("files", ("a.zip", archive)), ("files", ("b.png", png_bytes()))]
    _expect(client.post("/v1/datasets", files=files), 422, "invalid_request", runtime)


@pytest.mark.parametrize("query", ["name=", "name=" + "x" * 201, "labels_from=names"])
def test_bad_parameters(client: TestClient, runtime: Runtime, query: str) -> None:
    answer = client.post(
        f"/v1/datasets?{query}", content=zip_of({"a.png": png_bytes()}), headers=ZIP
    )
    _expect(answer, 422, "invalid_request", runtime)


@pytest.mark.parametrize("form", [True, False])
def test_a_full_disk(
    make_client: MakeClient, make_settings: MakeSettings, small_disk: Path, form: bool
) -> None:
    settings = make_settings()  # the tables are on another disk than the uploads
    full = make_settings(data_dir=small_disk, database_url=settings.sqlalchemy_url)
    client = make_client(full)
    small, large = zip_of({"a.png": png_bytes()}), b"PK\x03\x04" + bytes(3 * 1024 * 1024)
    kept = client.post("/v1/datasets", content=small, headers=ZIP).json()
    body: dict[str, Any] = {"content": large, "headers": ZIP}
    if form:
        body = {"files": [("files", ("a.zip", large))]}
    answer = client.post("/v1/datasets", **body)
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
    listed = client.get("/v1/datasets").json()["data"]
    assert [item["id"] for item in listed] == [kept["dataset_id"]]
    assert list(full.temporary_dir.iterdir()) == []
    uploads = list((full.blob_dir / "uploads").iterdir())
    assert [path.read_bytes() for path in uploads] == [small]
    assert client.post("/v1/datasets", content=small, headers=ZIP).status_code == 202


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_long_names_are_shortened_in_lists(
    client: TestClient, work: Work, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    """A page has up to a thousand rows, so that long names are shortened."""
    good = {f"{number:02}{'n' * 3_000}.png": png_bytes() for number in range(20)}
    bad = {f"{number:02}{'b' * 3_000}.png": b"text" for number in range(10)}
    job = client.post("/v1/datasets", content=pack(good | bad), headers=ZIP).json()
    work(job["id"])
    for part, count in (("images", 20), ("issues", 10)):
        answer = client.get(f"/v1/datasets/{job['dataset_id']}/{part}", params={"limit": 1000})
        rows = answer.json()["data"]
        assert len(rows) == count
        assert len(answer.content) < count * 2500
        assert {len(row["name"]) for row in rows} == {1024}
        assert all("name cut: it has 3,006 bytes" in str(row) for row in rows)
