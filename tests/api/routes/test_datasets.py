"""Uploads of every kind, and their files."""

from collections.abc import Mapping
from datetime import datetime

import pytest
import zstandard
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import Json, Work, upload
from tests.buckets import any_storage
from tests.images import ZIP, jpeg_bytes, png_bytes, tar_of, zip_of

_FILES = {"a.jpg": jpeg_bytes("red"), "b/c.png": png_bytes("blue")}


def _names(client: TestClient, dataset_id: str) -> list[str]:
    data = client.get(f"/v1/datasets/{dataset_id}/images").json()["data"]
    return [image["name"] for image in data]


def _form(files: Mapping[str, bytes]) -> list[tuple[str, tuple[str, bytes]]]:
    return [("files", (name, data)) for name, data in files.items()]


def test_an_upload_is_accepted_as_a_job(client: TestClient) -> None:
    answer = client.post("/v1/datasets?name=Holiday", content=zip_of(_FILES), headers=ZIP)
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["Retry-After"] == "1"
    assert (job["kind"], job["status"]) == ("ingest", "queued")
    assert job["config"]["source"]["type"] == "archive"
    assert job["progress"]["stages"] == ["ingest"]
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert (dataset["name"], dataset["status"], dataset["image_count"]) == (
        "Holiday",
        "ingesting",
        0,
    )
    assert client.get(answer.headers["Location"]).json() == job


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/zip", zip_of(_FILES)),
        ("application/x-tar", tar_of(_FILES)),
        ("application/gzip", tar_of(_FILES, compression="gz")),
        ("application/octet-stream", tar_of(_FILES, compression="xz")),
        ("application/zstd", zstandard.compress(tar_of(_FILES))),
        ("application/octet-stream", tar_of(_FILES, compression="bz2")),
    ],
)
def test_raw_archives(client: TestClient, work: Work, content_type: str, body: bytes) -> None:
    job = client.post("/v1/datasets", content=body, headers={"Content-Type": content_type}).json()
    work(job["id"])
    assert _names(client, job["dataset_id"]) == list(_FILES)
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert dataset["bytes"] == sum(map(len, _FILES.values()))


@any_storage
def test_a_form_of_images(client: TestClient, work: Work) -> None:
    job = client.post("/v1/datasets", files=_form(_FILES), data={"comment": "x"}).json()
    work(job["id"])
    assert _names(client, job["dataset_id"]) == list(_FILES)


@pytest.mark.parametrize("archive", [zip_of(_FILES), tar_of(_FILES, compression="gz")])
def test_a_form_with_one_archive(client: TestClient, work: Work, archive: bytes) -> None:
    job = client.post("/v1/datasets", files=_form({"photos": archive})).json()
    work(job["id"])
    assert _names(client, job["dataset_id"]) == list(_FILES)


def test_paths_in_form_file_names_are_removed(client: TestClient, work: Work) -> None:
    names = [
        "../../etc/passwd",
        "/abs.png",
        "C:\\x\\y.png",
        "ねこ.png",
        "x" * 4000,
        "..",
        "same",
        "same",
    ]
    files = [("files", (name, png_bytes())) for name in names]
    job = client.post("/v1/datasets", files=files).json()
    work(job["id"])
    cut = "x" * 1024  # TEMI_MAX_NAME_BYTES
    expected = ["etc/passwd", "abs.png", "y.png", "ねこ.png", cut, "image", "same", "same"]
    assert _names(client, job["dataset_id"]) == expected


@any_storage
def test_the_result_of_an_ingest(client: TestClient, work: Work, runtime: Runtime) -> None:
    job = upload(client, _FILES)
    key = job["config"]["source"]["key"]
    assert runtime.storage.exists(key)
    reports = work(job["id"])
    assert not runtime.storage.exists(key)  # its images are stored one by one now
    done = client.get(f"/v1/jobs/{job['id']}").json()
    assert done["status"] == "succeeded"
    assert done["result"] == {
        "dataset_id": job["dataset_id"],
        "image_count": 2,
        "issue_count": 0,
        "skipped_count": 0,
        "skipped": {},
    }
    assert done["counts"] == {"total": 2, "completed": 2, "failed": 0, "skipped": 0}
    assert done["timings"]["ingest"]["skipped"] is False
    assert (reports[0].stage, reports[0].total, reports[0].completed) == ("ingest", 2, 0)
    assert reports[-1].completed == 2
    start, end = (datetime.fromisoformat(done[name]) for name in ("started_at", "finished_at"))
    assert start <= end


def test_bad_files_become_issues(client: TestClient, dataset: Json) -> None:
    assert (dataset["image_count"], dataset["issue_count"], dataset["labeled_count"]) == (4, 1, 4)
    assert (dataset["skipped_count"], dataset["skipped"]) == (1, {".pdf": 1})
    issues = client.get(f"/v1/datasets/{dataset['id']}/issues").json()["data"]
    assert [(issue["name"], issue["code"]) for issue in issues] == [
        ("bad/text.jpg", "image_undecodable")
    ]
    assert all(issue["detail"] for issue in issues)


def test_images_are_listed_with_their_metadata(client: TestClient, dataset: Json) -> None:
    images = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"]
    assert [image["name"] for image in images] == [
        "cats/a.jpg",
        "cats/b.png",
        "dogs/c.jpg",
        "dogs/d.jpg",
    ]
    assert [image["label"] for image in images] == ["cats", "cats", "dogs", "dogs"]
    first = images[0]
    assert (first["width"], first["height"], first["format"]) == (40, 20, "JPEG")
    assert first["bytes"] == len(jpeg_bytes("red", (40, 20)))
    assert first["notes"] == []
    assert first["dataset_id"] == dataset["id"]


@any_storage
def test_the_same_image_is_stored_once(client: TestClient, work: Work, runtime: Runtime) -> None:
    job = upload(client, {"one.png": png_bytes(), "two.png": png_bytes()})
    work(job["id"])
    images = client.get(f"/v1/datasets/{job['dataset_id']}/images").json()["data"]
    assert len(images) == 2
    assert images[0]["sha256"] == images[1]["sha256"]
    assert len(list(runtime.storage.list("sha256"))) == 1


def test_datasets_are_listed(client: TestClient, dataset: Json) -> None:
    assert client.get("/v1/datasets").json()["data"] == [dataset]


@pytest.mark.parametrize("path", ["", "/images", "/issues"])
def test_an_unknown_dataset(client: TestClient, path: str) -> None:
    answer = client.get(f"/v1/datasets/ds_none{path}")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_datasets_are_listed_by_name(client: TestClient, dataset: Json) -> None:
    def listed(name: str) -> list[str]:
        answer = client.get("/v1/datasets", params={"name": name})
        return [found["id"] for found in answer.json()["data"]]

    assert listed(dataset["name"]) == [dataset["id"]]
    assert listed(dataset["name"].lower()) == []
    assert client.get("/v1/datasets", params={"name": "x" * 201}).status_code == 422
