"""Datasets from URLs and buckets, with real servers."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from fastapi.testclient import TestClient

from app.core.datasets.sources import urls
from app.core.datasets.sources.urls import Address
from app.core.runtime import Runtime
from tests.api.source_steps import CSV, ingest, refused, shown_images, shown_issues
from tests.conftest import MakeClient, MakeSettings
from tests.images import jpeg_bytes, png_bytes
from tests.servers import run_s3


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    for name, data in {
        "cats/1.png": png_bytes("red"),
        "cats/2.png": png_bytes("green"),
        "dogs/3.jpg": jpeg_bytes("blue"),
        "note.txt": b"no image",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


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
    open_settings = make_settings(source_urls=True, max_bad_fraction=0.9)
    client, reader = make_client(open_settings), Runtime(open_settings)
    wanted = [f"{site}/{name}" for name in ("cats/1.png", "none.png", "dogs/3.jpg", "note.txt")]
    inside = "http://localhost.localdomain.invalid/x"
    foreign = "http://bücher.invalid/é"
    addresses = [*wanted, inside, foreign, f"{site}/cats/2.png"]
    job = ingest(client, reader, json={"source": {"type": "urls", "urls": addresses}})
    assert job["counts"] == {"total": 7, "completed": 7, "failed": 4, "skipped": 0}
    names = [image["name"] for image in shown_images(client, job)]
    assert names == [wanted[0], wanted[2], f"{site}/cats/2.png"]
    assert shown_issues(client, job) == [
        (wanted[1], "url_unreachable"),
        (wanted[3], "image_undecodable"),
        (inside, "url_unreachable"),
        (foreign, "url_unreachable"),
    ]
    reader.db.dispose()


def test_internal_addresses_are_refused(
    make_client: MakeClient, make_settings: MakeSettings, site: str
) -> None:
    settings = make_settings(source_urls=True, max_urls=2)
    client, reader = make_client(settings), Runtime(settings)
    for url in (f"{site}/cats/1.png", "http://169.254.169.254/x", "file:///etc/passwd", "x"):
        source = {"type": "urls", "urls": [url]}
        refused(client, 422, "url_forbidden", json={"source": source})
    many = {"type": "urls", "urls": ["https://example.org/a"] * 3}
    refused(client, 422, "manifest_invalid", json={"source": many})
    named = {"type": "urls", "urls": [site.replace("127.0.0.1", "localhost")]}
    job = ingest(client, reader, json={"source": named})  # a name is looked up by the job
    assert job["status"] == "failed"
    assert [code for _, code in shown_issues(client, job)] == ["url_forbidden"]
    reader.db.dispose()


def test_urls_are_disabled_by_default(client: TestClient) -> None:
    source = {"type": "urls", "urls": ["https://example.org/a.jpg"]}
    refused(client, 422, "url_forbidden", json={"source": source})


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
            refused(client, 422, "source_forbidden", json={"source": source})
        source = {"type": "objects", "url": "s3://photos/2024/"}
        job = ingest(client, reader, json={"source": source, "labels_from": "manifest"})
        found = [(i["name"], i["label"], i["metadata"]) for i in shown_images(client, job)]
        assert found == [("cats/a.png", "tabby", {"n": 1}), ("dogs/b.png", None, {})]
        csv = "path,label\ns3://photos/2024/dogs/b.png,dog\ns3://photos/2024/none.png,\n"
        job = ingest(client, reader, content=csv, headers=CSV)
        assert [image["label"] for image in shown_images(client, job)] == ["dog"]
        assert shown_issues(client, job) == [("s3://photos/2024/none.png", "source_unreadable")]
        reader.db.dispose()
