"""Exports: created by jobs, listed, downloaded in whole or in part, deleted."""

import hashlib
import io
import zipfile
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering, Work
from tests.buckets import any_storage


@pytest.fixture
def clustering_id(dataset: Json, make_clustering: MakeClustering) -> str:
    return make_clustering(dataset["id"])


def start(client: TestClient, clustering_id: str, format_: str = "csv", **options: Any) -> Json:
    body = {"kind": "export", "clustering_id": clustering_id, "format": format_, **options}
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    job: Json = answer.json()
    return job


@pytest.fixture
def export(client: TestClient, clustering_id: str, work: Work) -> Json:
    job = start(client, clustering_id)
    work(job["id"])
    finished = client.get(f"/v1/jobs/{job['id']}").json()
    found: Json = client.get(f"/v1/exports/{finished['result']['export_id']}").json()
    return found


def test_the_job_has_the_export_configuration(client: TestClient, clustering_id: str) -> None:
    job = start(client, clustering_id, "parquet", cluster_ids=[1, 0], min_probability=0.5)
    assert (job["kind"], job["status"]) == ("export", "queued")
    assert job["config"] == {
        "clustering_id": clustering_id,
        "format": "parquet",
        "revision": 1,
        "cluster_ids": [0, 1],
        "min_probability": 0.5,
        "min_purity": None,
        "proof": None,
        "pure_cluster_ids": None,
        "proven_probability": None,
        "include_excluded": False,
        "validation_fraction": 0,
        "split_seed": 0,
        "image_url_base": None,
        "filename": "Cats-Dogs-rev1.parquet",
    }


@any_storage
def test_an_export(client: TestClient, clustering_id: str, export: Json) -> None:
    content = client.get(f"/v1/exports/{export['id']}/content")
    assert export["clustering_id"] == clustering_id
    assert (export["format"], export["revision"], export["image_count"]) == ("csv", 1, 4)
    assert export["filters"] == {
        "cluster_ids": None,
        "min_probability": None,
        "min_purity": None,
        "proof": None,
        "include_excluded": False,
    }
    assert export["sha256"] == hashlib.sha256(content.content).hexdigest()
    assert export["bytes"] == len(content.content)
    assert content.headers["content-type"] == "text/csv; charset=utf-8"
    assert content.headers["content-disposition"] == 'attachment; filename="Cats-Dogs-rev1.csv"'
    assert content.headers["etag"] == f'"{export["sha256"]}"'
    assert content.text.splitlines()[1].split(",")[1:4] == ["cats/a.jpg", "0", "cluster 0"]


@any_storage
def test_images_of_a_real_upload(client: TestClient, clustering_id: str, work: Work) -> None:
    job = start(client, clustering_id, "image_folder")
    work(job["id"])
    export_id = client.get(f"/v1/jobs/{job['id']}").json()["result"]["export_id"]
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/v1/exports/{export_id}/content").content))
    assert archive.namelist() == [
        "cluster 0/a.jpg",
        "cluster 1/b.png",
        "cluster 0/c.jpg",
        "cluster 1/d.jpg",
        "classes.txt",
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("bytes=0-9", slice(0, 10)), ("bytes=10-", slice(10, None)), ("bytes=-5", slice(-5, None))],
)
@any_storage
def test_a_range(client: TestClient, export: Json, asked: str, expected: slice) -> None:
    url = f"/v1/exports/{export['id']}/content"
    whole = client.get(url).content
    part = client.get(url, headers={"Range": asked, "If-Range": f'"{export["sha256"]}"'})
    assert part.status_code == 206
    assert part.content == whole[expected]
    assert part.headers["content-range"].endswith(f"/{len(whole)}")


def test_invalid_ranges(client: TestClient, export: Json) -> None:
    url = f"/v1/exports/{export['id']}/content"
    for asked in ("bytes=999999-", "bytes=9-2", "bytes=x"):
        answer = client.get(url, headers={"Range": asked})
        assert answer.status_code == 416, asked
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "range_not_satisfiable"
    far = client.get(url, headers={"Range": "bytes=999999-"})
    assert far.headers["content-range"] == f"bytes */{export['bytes']}"
    assert client.get(url, headers={"Range": "pages=1-2"}).status_code == 200
    stale = {"Range": "bytes=0-1", "If-Range": '"other"'}
    assert client.get(url, headers=stale).status_code == 200


def test_if_none_match(client: TestClient, export: Json) -> None:
    url = f"/v1/exports/{export['id']}/content"
    answer = client.get(url, headers={"If-None-Match": f'"{export["sha256"]}"'})
    assert (answer.status_code, answer.content) == (304, b"")


def test_exports_are_listed_newest_first(
    client: TestClient, clustering_id: str, export: Json, work: Work
) -> None:
    work(start(client, clustering_id, "jsonl")["id"])
    data = client.get("/v1/exports").json()["data"]
    assert [item["format"] for item in data] == ["jsonl", "csv"]
    mine = {"clustering_id": clustering_id, "limit": "1"}
    page = client.get("/v1/exports", params=mine).json()
    assert (len(page["data"]), page["has_more"]) == (1, True)
    other = client.get("/v1/exports", params={"clustering_id": "cl_other"}).json()
    assert other["data"] == []


@any_storage
def test_deleting(client: TestClient, runtime: Runtime, export: Json) -> None:
    url = f"/v1/exports/{export['id']}"
    assert client.delete(url).status_code == 204
    assert client.get(url).status_code == 404
    assert client.get(f"{url}/content").status_code == 404
    assert client.delete(url).status_code == 404
    assert list(runtime.storage.list("exports")) == []
    job = client.get(f"/v1/jobs/{export['job_id']}").json()
    assert job["status"] == "succeeded"


@any_storage
def test_a_missing_file(client: TestClient, runtime: Runtime, export: Json) -> None:
    runtime.storage.delete(f"exports/{export['job_id']}/{export['filename']}")
    answer = client.get(f"/v1/exports/{export['id']}/content")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"clustering_id": "cl_none", "format": "csv"}, 404, None),
        ({"format": "csv", "revision": 2}, 422, "revision"),
        ({"format": "csv", "cluster_ids": [3]}, 422, "cluster_ids"),
        ({"format": "csv", "min_probability": 2}, 422, "min_probability"),
        ({"format": "xml"}, 422, "format"),
    ],
)
def test_bad_requests(
    client: TestClient, clustering_id: str, body: Json, status: int, field: str | None
) -> None:
    sent = {"kind": "export", "clustering_id": clustering_id, **body}
    answer = client.post("/v1/jobs", json=sent)
    assert answer.status_code == status
    assert [e["field"] for e in answer.json()["errors"]] == ([field] if field else [])


@any_storage
def test_a_lost_image_fails_the_job(
    client: TestClient, runtime: Runtime, dataset: Json, clustering_id: str, work: Work
) -> None:
    images = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"]
    sha256 = images[2]["sha256"]
    runtime.storage.delete(f"sha256/{sha256[:2]}/{sha256}")
    job = start(client, clustering_id, "huggingface")
    work(job["id"])
    failed = client.get(f"/v1/jobs/{job['id']}").json()
    assert (failed["status"], failed["error"]["code"]) == ("failed", "image_missing")
    assert "dogs/c.jpg" in failed["error"]["detail"]
    assert client.get("/v1/exports").json()["data"] == []
