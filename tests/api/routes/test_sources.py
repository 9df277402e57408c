"""Datasets from folders of the server and from manifests."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from tests.api.conftest import work_on
from tests.api.source_steps import (
    CSV,
    JSON_LINES,
    ingest,
    refused,
    shown_images,
    shown_issues,
)
from tests.conftest import MakeClient, MakeSettings
from tests.images import ZIP, jpeg_bytes, png_bytes, tar_of, zip_of


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


def test_a_long_manifest_in_an_archive_is_left_to_the_job(
    client: TestClient, runtime: Runtime
) -> None:
    """A few kilobytes may unpack to a manifest that is too large for the API process."""
    manifest = b"path\n" + b" \n" + b"a.png\n" * 2_000_000
    body = zip_of({"manifest.csv": manifest, "a.png": png_bytes()})
    job = ingest(client, runtime, content=body, headers=ZIP, params={"labels_from": "manifest"})
    assert (job["status"], job["error"]["code"]) == ("failed", "manifest_invalid")
    assert "Line 2" in job["error"]["detail"]


def test_a_manifest_in_an_archive_has_a_limit_of_rows(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    few = make_settings(max_archive_members=3)
    client, reader = make_client(few), Runtime(few)
    for rows, status in ((3, "succeeded"), (4, "failed")):
        manifest = b"path\n" + b"a.png\n" * rows
        body = tar_of({"manifest.csv": manifest, "a.png": png_bytes()})
        job = ingest(client, reader, content=body, headers=ZIP, params={"labels_from": "manifest"})
        assert job["status"] == status
    assert job["error"]["code"] == "manifest_invalid"
    reader.db.dispose()


def test_a_folder_of_the_server(client: TestClient, runtime: Runtime, photos: Path) -> None:
    body = {
        "name": "Server",
        "labels_from": "folder",
        "source": {"type": "folder", "path": str(photos)},
        "priority": 3,
    }
    job = ingest(client, runtime, json=body)
    assert job["status"] == "succeeded"
    assert job["counts"] == {"total": 4, "completed": 4, "failed": 0, "skipped": 1}
    found = [(image["name"], image["label"]) for image in shown_images(client, job)]
    assert found == [("cats/1.png", "cats"), ("cats/2.png", "cats"), ("dogs/3.jpg", "dogs")]
    assert shown_issues(client, job) == []
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert (dataset["name"], dataset["skipped"]) == ("Server", {".txt": 1})
    assert not list((runtime.settings.blob_dir / "listings").iterdir())
    url = f"/v1/datasets/{job['dataset_id']}/images"
    cats = {"source": {"type": "folder", "path": str(photos / "cats")}}
    more = client.post(url, json=cats).json()
    work_on(runtime, more["id"])
    assert len(shown_images(client, job)) == 5


def test_folders_that_are_forbidden(
    client: TestClient, photos: Path, make_client: MakeClient, make_settings: MakeSettings
) -> None:
    (photos / "out").symlink_to("/etc")
    for path in ("/etc", str(photos / ".."), str(photos / "out"), "photos"):
        source = {"type": "folder", "path": path}
        refused(client, 422, "source_forbidden", json={"source": source})
    source = {"type": "folder", "path": str(photos / "none")}
    problem = refused(client, 422, "invalid_request", json={"source": source})
    assert problem["errors"][0]["field"] == "source.path"
    closed = make_client(make_settings())
    source = {"type": "folder", "path": str(photos)}
    refused(closed, 422, "source_forbidden", json={"source": source})


def test_a_link_that_leads_out_is_an_issue(
    client: TestClient, runtime: Runtime, photos: Path
) -> None:
    secret = photos.parent / "secret.png"
    secret.write_bytes(png_bytes())
    (photos / "out.png").symlink_to(secret)
    job = ingest(client, runtime, json={"source": {"type": "folder", "path": str(photos)}})
    assert ("out.png", "source_forbidden") in shown_issues(client, job)


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
def test_invalid_json_sources(client: TestClient, body: Any, field: str) -> None:
    problem = refused(client, 422, "invalid_request", json=body)
    assert field in [error["field"] for error in problem["errors"]]


def test_malformed_json(client: TestClient) -> None:
    for content in (b"", b"{", b"\xff", b'{"source": ' + b"[" * 100_000):
        refused(
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
        job = ingest(client, runtime, json={"source": source, "labels_from": "manifest"})
    else:
        body = zip_of(files) if kind == "zip" else tar_of(files, compression="gz")
        job = ingest(client, runtime, content=body, headers=ZIP, params={"labels_from": "manifest"})
    images = {image["name"]: image for image in shown_images(client, job)}
    assert (images["cats/1.png"]["label"], images["cats/1.png"]["metadata"]) == (
        "tabby",
        {"camera": "X100"},
    )
    assert (images["dogs/3.jpg"]["label"], images["dogs/3.jpg"]["metadata"]) == (
        None,
        {"camera": "X1"},
    )
    assert (images["cats/2.png"]["label"], images["cats/2.png"]["metadata"]) == (None, {})
    assert "manifest.csv" not in [name for name, _ in shown_issues(client, job)]


def test_a_manifest_that_is_missing_or_bad(client: TestClient, runtime: Runtime) -> None:
    params = {"labels_from": "manifest"}
    image = {"a.png": png_bytes()}
    problem = refused(
        client, 422, "manifest_invalid", content=zip_of(image), headers=ZIP, params=params
    )
    assert "manifest.csv" in problem["detail"]
    bad = zip_of(image | {"manifest.jsonl": b'{"path": "a.png"}\n{'})
    problem = refused(client, 422, "manifest_invalid", content=bad, headers=ZIP, params=params)
    assert "Line 2" in problem["detail"]
    job = ingest(client, runtime, content=tar_of(image), headers=ZIP, params=params)
    assert (job["status"], job["error"]["code"]) == ("failed", "manifest_invalid")


def test_a_manifest_as_the_body(client: TestClient, runtime: Runtime, photos: Path) -> None:
    csv = f"path,label,year\n{photos}/dogs/3.jpg,dog,2020\n{photos}/cats/1.png,,\n"
    job = ingest(client, runtime, content=csv, headers=CSV, params={"name": "M"})
    found = [(image["label"], image["metadata"]) for image in shown_images(client, job)]
    assert found == [("dog", {"year": "2020"}), (None, {})]
    assert job["counts"]["total"] == 2
    rows = [
        {"path": f"{photos}/cats/1.png", "label": "cat", "tags": ["a", "b"]},
        {"path": f"{photos}/gone.png"},
    ]
    lines = "\n".join(map(json.dumps, rows))
    job = ingest(client, runtime, content=lines, headers=JSON_LINES)
    assert [image["metadata"] for image in shown_images(client, job)] == [{"tags": ["a", "b"]}]
    assert shown_issues(client, job) == [(f"{photos}/gone.png", "source_unreadable")]
    assert not list((runtime.settings.blob_dir / "uploads").iterdir())


@pytest.mark.parametrize(
    ("content", "headers", "code", "words"),
    [
        ("name\nx\n", CSV, "manifest_invalid", "Line 1 of the manifest has no `path`"),
        ("path\n/etc/passwd\n", CSV, "source_forbidden", "Line 2"),
        ("path\na.jpg\n", CSV, "source_forbidden", "Line 2"),
        ("url\nhttps://example.org/a.jpg\n", CSV, "url_forbidden", "Line 2"),
        ("path\ns3://photos/a.jpg\n", CSV, "source_forbidden", "Line 2"),
        ("path\n", CSV, "dataset_empty", "no images"),
        ('{"path": 1}', JSON_LINES, "manifest_invalid", "Line 1"),
        (b"path\n\xff\n", CSV, "manifest_invalid", "not UTF-8"),
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
    assert words in refused(client, 422, code, content=content, headers=headers)["detail"]
    assert not [path for path in runtime.settings.blob_dir.rglob("*") if path.is_file()]


def test_query_options_reach_the_job(client: TestClient) -> None:
    wishes = {"priority": "7", "labels_from": "folder"}
    job = client.post(
        "/v1/datasets", params=wishes, content=zip_of({"a/b.png": png_bytes()}), headers=ZIP
    )
    assert (job.status_code, job.json()["priority"]) == (202, 7)
    refused = client.post(
        "/v1/datasets",
        params={"webhook_url": "https://nobody.example"},
        content=zip_of({"a.png": png_bytes()}),
        headers=ZIP,
    )
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "webhook_url"
