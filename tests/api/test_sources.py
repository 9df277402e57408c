"""Datasets from folders, buckets, addresses and manifests."""

import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from app.core.settings import Settings
from app.core.sources import urls
from app.core.sources.urls import Address
from tests.api.conftest import Json, work_on
from tests.conftest import MakeClient, MakeSettings
from tests.images import jpeg_bytes, png_bytes, tar_of, zip_of
from tests.servers import run_s3

_CSV = {"Content-Type": "text/csv"}
_JSON_LINES = {"Content-Type": "application/x-ndjson; charset=utf-8"}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    for name, data in {
        "cats/1.png": png_bytes("red"),
        "cats/2.png": png_bytes("green"),
        "dogs/3.jpg": jpeg_bytes("blue"),
        "note.txt": b"no image",
        ".hidden.png": png_bytes(),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def settings(make_settings: MakeSettings, photos: Path) -> Settings:
    return make_settings(source_folders=str(photos))


def _ingest(client: TestClient, runtime: Runtime, **request: Any) -> Json:
    """Send a request, do its job; returns the job as it ended."""
    answer = client.post("/v1/datasets", **request)
    assert answer.status_code == 202, answer.text
    work_on(runtime, answer.json()["id"])
    job: Json = client.get(f"/v1/jobs/{answer.json()['id']}").json()
    return job


def _images(client: TestClient, job: Json) -> list[Json]:
    data: list[Json] = client.get(f"/v1/datasets/{job['dataset_id']}/images").json()["data"]
    return data


def _issues(client: TestClient, job: Json) -> list[tuple[str, str]]:
    data = client.get(f"/v1/datasets/{job['dataset_id']}/issues").json()["data"]
    return [(issue["name"], issue["code"]) for issue in data]


def _refused(client: TestClient, status: int, code: str, **request: Any) -> Json:
    answer = client.post("/v1/datasets", **request)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert client.get("/v1/datasets").json()["data"] == []
    problem: Json = answer.json()
    return problem


def test_a_folder_of_the_server(client: TestClient, runtime: Runtime, photos: Path) -> None:
    body = {
        "name": "Server",
        "labels_from": "folder",
        "source": {"type": "folder", "path": str(photos)},
        "priority": 3,
    }
    job = _ingest(client, runtime, json=body)
    assert job["status"] == "succeeded"
    assert job["counts"] == {"total": 4, "completed": 4, "failed": 1}
    found = [(image["name"], image["label"]) for image in _images(client, job)]
    assert found == [("cats/1.png", "cats"), ("cats/2.png", "cats"), ("dogs/3.jpg", "dogs")]
    assert _issues(client, job) == [("note.txt", "image_undecodable")]
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert dataset["name"] == "Server"
    assert not list((runtime.storage.root / "listings").iterdir())
    url = f"/v1/datasets/{job['dataset_id']}/images"
    cats = {"source": {"type": "folder", "path": str(photos / "cats")}}
    more = client.post(url, json=cats).json()
    work_on(runtime, more["id"])
    assert len(_images(client, job)) == 5


def test_folders_that_are_forbidden(
    client: TestClient, photos: Path, make_client: MakeClient, make_settings: MakeSettings
) -> None:
    (photos / "out").symlink_to("/etc")
    for path in ("/etc", str(photos / ".."), str(photos / "out"), "photos"):
        source = {"type": "folder", "path": path}
        _refused(client, 422, "source_forbidden", json={"source": source})
    source = {"type": "folder", "path": str(photos / "none")}
    problem = _refused(client, 422, "invalid_request", json={"source": source})
    assert problem["errors"][0]["field"] == "source.path"
    closed = make_client(make_settings())
    source = {"type": "folder", "path": str(photos)}
    _refused(closed, 422, "source_forbidden", json={"source": source})


def test_a_link_that_leads_out_is_an_issue(
    client: TestClient, runtime: Runtime, photos: Path
) -> None:
    secret = photos.parent / "secret.png"
    secret.write_bytes(png_bytes())
    (photos / "out.png").symlink_to(secret)
    job = _ingest(client, runtime, json={"source": {"type": "folder", "path": str(photos)}})
    assert ("out.png", "source_forbidden") in _issues(client, job)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "source"),
        ({"source": {}}, "source.type"),
        ({"source": {"type": "ftp"}}, "source.type"),
        ({"source": {"type": "folder"}}, "source.path"),
        ({"source": {"type": "folder", "path": "/x", "y": 1}}, "source.y"),
        ({"source": {"type": "urls", "urls": []}}, "source.urls"),
        ({"source": {"type": "folder", "path": "/x"}, "name": ""}, "name"),
        ({"source": {"type": "folder", "path": "/x"}, "labels_from": "x"}, "labels_from"),
        ({"source": {"type": "folder", "path": "/x"}, "webhook_url": "http://x"}, "webhook_url"),
        ([], ""),
    ],
)
def test_json_that_says_nothing(client: TestClient, body: Any, field: str) -> None:
    problem = _refused(client, 422, "invalid_request", json=body)
    assert field in [error["field"] for error in problem["errors"]]


def test_no_json_at_all(client: TestClient) -> None:
    for content in (b"", b"{", b"\xff", b'{"source": ' + b"[" * 100_000):
        _refused(
            client, 422, "invalid_request", content=content,
            headers={"Content-Type": "application/json"},
        )  # fmt: skip


@pytest.mark.parametrize("kind", ["zip", "tar", "folder"])
def test_a_manifest_inside_of_a_source(
    client: TestClient, runtime: Runtime, photos: Path, kind: str
) -> None:
    manifest = b"file,label,camera\n./cats/1.png,tabby,X100\ndogs/3.jpg,,X1\nnone.png,x,y\n"
    files = {str(path.relative_to(photos)): path.read_bytes() for path in photos.rglob("*.[jp]*g")}
    files = dict(sorted(files.items())) | {"manifest.csv": manifest}
    if kind == "folder":
        (photos / "manifest.csv").write_bytes(manifest)
        source = {"type": "folder", "path": str(photos)}
        job = _ingest(client, runtime, json={"source": source, "labels_from": "manifest"})
    else:
        body = zip_of(files) if kind == "zip" else tar_of(files, compression="gz")
        job = _ingest(client, runtime, content=body, params={"labels_from": "manifest"})
    images = {image["name"]: image for image in _images(client, job)}
    assert (images["cats/1.png"]["label"], images["cats/1.png"]["metadata"]) == (
        "tabby",
        {"camera": "X100"},
    )
    assert (images["dogs/3.jpg"]["label"], images["dogs/3.jpg"]["metadata"]) == (
        None,
        {"camera": "X1"},
    )
    assert (images["cats/2.png"]["label"], images["cats/2.png"]["metadata"]) == (None, {})
    assert "manifest.csv" not in [name for name, _ in _issues(client, job)]


def test_a_manifest_that_is_missing_or_bad(client: TestClient, runtime: Runtime) -> None:
    params = {"labels_from": "manifest"}
    image = {"a.png": png_bytes()}
    problem = _refused(client, 422, "manifest_invalid", content=zip_of(image), params=params)
    assert "manifest.csv" in problem["detail"]
    bad = zip_of(image | {"manifest.jsonl": b'{"path": "a.png"}\n{'})
    problem = _refused(client, 422, "manifest_invalid", content=bad, params=params)
    assert "Line 2" in problem["detail"]
    job = _ingest(client, runtime, content=tar_of(image), params=params)
    assert (job["status"], job["error"]["code"]) == ("failed", "manifest_invalid")


def test_a_manifest_as_the_body(client: TestClient, runtime: Runtime, photos: Path) -> None:
    csv = f"path,label,year\n{photos}/dogs/3.jpg,dog,2020\n{photos}/cats/1.png,,\n"
    job = _ingest(client, runtime, content=csv, headers=_CSV, params={"name": "M"})
    found = [(image["label"], image["metadata"]) for image in _images(client, job)]
    assert found == [("dog", {"year": "2020"}), (None, {})]
    assert job["counts"]["total"] == 2
    rows = [
        {"path": f"{photos}/cats/1.png", "label": "cat", "tags": ["a", "b"]},
        {"path": f"{photos}/gone.png"},
    ]
    lines = "\n".join(map(json.dumps, rows))
    job = _ingest(client, runtime, content=lines, headers=_JSON_LINES)
    assert [image["metadata"] for image in _images(client, job)] == [{"tags": ["a", "b"]}]
    assert _issues(client, job) == [(f"{photos}/gone.png", "source_unreadable")]
    assert not list((runtime.storage.root / "uploads").iterdir())


@pytest.mark.parametrize(
    ("content", "headers", "code", "words"),
    [
        ("name\nx\n", _CSV, "manifest_invalid", "Line 1 of the manifest has no `path`"),
        ("path\n/etc/passwd\n", _CSV, "source_forbidden", "Line 2"),
        ("path\na.jpg\n", _CSV, "source_forbidden", "Line 2"),
        ("url\nhttps://example.org/a.jpg\n", _CSV, "url_forbidden", "Line 2"),
        ("path\ns3://photos/a.jpg\n", _CSV, "source_forbidden", "Line 2"),
        ("path\n", _CSV, "dataset_empty", "no images"),
        ('{"path": 1}', _JSON_LINES, "manifest_invalid", "Line 1"),
        (b"path\n\xff\n", _CSV, "manifest_invalid", "not UTF-8"),
    ],
)
def test_manifests_that_are_refused(
    client: TestClient,
    runtime: Runtime,
    content: Any,
    headers: dict[str, str],
    code: str,
    words: str,
) -> None:
    assert words in _refused(client, 422, code, content=content, headers=headers)["detail"]
    assert not [path for path in runtime.storage.root.rglob("*") if path.is_file()]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site(photos: Path) -> Iterator[str]:
    """A real web server on loopback."""
    handler = partial(_Quiet, directory=str(photos))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_web_addresses(
    make_client: MakeClient,
    make_settings: MakeSettings,
    runtime: Runtime,
    site: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loopback_is_public(address: Address) -> bool:
        return str(address) == "127.0.0.1"

    monkeypatch.setattr(urls, "is_public", loopback_is_public)
    open_settings = make_settings(source_urls=True)
    client, reader = make_client(open_settings), Runtime(open_settings)
    wanted = [f"{site}/{name}" for name in ("cats/1.png", "none.png", "dogs/3.jpg", "note.txt")]
    inside = "http://localhost.localdomain.invalid/x"
    body = {"source": {"type": "urls", "urls": [*wanted, inside, f"{site}/cats/2.png"]}}
    job = _ingest(client, reader, json=body)
    assert job["counts"] == {"total": 6, "completed": 6, "failed": 3}
    names = [image["name"] for image in _images(client, job)]
    assert names == [wanted[0], wanted[2], f"{site}/cats/2.png"]
    assert _issues(client, job) == [
        (wanted[1], "url_unreachable"),
        (wanted[3], "image_undecodable"),
        (inside, "url_unreachable"),
    ]
    reader.db.dispose()


def test_addresses_inside_are_forbidden(
    make_client: MakeClient, make_settings: MakeSettings, site: str
) -> None:
    settings = make_settings(source_urls=True, max_urls=2)
    client, reader = make_client(settings), Runtime(settings)
    for url in (f"{site}/cats/1.png", "http://169.254.169.254/x", "file:///etc/passwd", "x"):
        source = {"type": "urls", "urls": [url]}
        _refused(client, 422, "url_forbidden", json={"source": source})
    many = {"type": "urls", "urls": ["https://example.org/a"] * 3}
    _refused(client, 422, "manifest_invalid", json={"source": many})
    named = {"type": "urls", "urls": [site.replace("127.0.0.1", "localhost")]}
    job = _ingest(client, reader, json={"source": named})  # a name is looked up by the job
    assert job["status"] == "failed"
    assert [code for _, code in _issues(client, job)] == ["url_forbidden"]
    reader.db.dispose()


def test_addresses_are_off_by_default(client: TestClient) -> None:
    source = {"type": "urls", "urls": ["https://example.org/a.jpg"]}
    _refused(client, 422, "url_forbidden", json={"source": source})


def test_a_bucket(
    make_client: MakeClient, make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with run_s3() as url:
        store = boto3.client("s3", endpoint_url=url)
        store.create_bucket(Bucket="photos")
        for key, data in {
            "2024/cats/a.png": png_bytes("red"),
            "2024/dogs/b.png": png_bytes("blue"),
            "2024/manifest.jsonl": b'{"path": "cats/a.png", "label": "tabby", "n": 1}',
            "2023/c.png": png_bytes("green"),
        }.items():
            store.put_object(Bucket="photos", Key=key, Body=data)
        store.close()
        settings = make_settings(s3_endpoint=url, source_buckets="s3://photos/2024")
        client, reader = make_client(settings), Runtime(settings)
        for forbidden in ("s3://photos", "s3://photos/2023", "s3://photos/20245", "s3://x/2024"):
            source = {"type": "objects", "url": forbidden}
            _refused(client, 422, "source_forbidden", json={"source": source})
        source = {"type": "objects", "url": "s3://photos/2024/"}
        job = _ingest(client, reader, json={"source": source, "labels_from": "manifest"})
        found = [(i["name"], i["label"], i["metadata"]) for i in _images(client, job)]
        assert found == [("cats/a.png", "tabby", {"n": 1}), ("dogs/b.png", None, {})]
        csv = "path,label\ns3://photos/2024/dogs/b.png,dog\ns3://photos/2024/none.png,\n"
        job = _ingest(client, reader, content=csv, headers=_CSV)
        assert [image["label"] for image in _images(client, job)] == ["dog"]
        assert _issues(client, job) == [("s3://photos/2024/none.png", "source_unreadable")]
        reader.db.dispose()
