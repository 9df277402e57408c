"""Appending images to a dataset, and failures of it."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.datasets.decoding.pool import DecoderPool
from app.core.datasets.images import ImageFacts
from app.core.platform.tables import Duplicate, Image
from app.core.runtime import Runtime
from tests.api.conftest import Json, Work, upload, work_on
from tests.images import TAR, ZIP, jpeg_bytes, png_bytes, tar_of, zip_of

_FIRST = {"a.png": png_bytes("red"), "b.png": png_bytes("green")}
_MORE = {"c/c.png": png_bytes("blue"), "again.png": png_bytes("red"), "bad.jpg": b"text"}


def _append(client: TestClient, dataset_id: str, files: dict[str, bytes], **params: str) -> Json:
    answer = client.post(
        f"/v1/datasets/{dataset_id}/images", content=tar_of(files), headers=TAR, params=params
    )
    assert answer.status_code == 202, answer.text
    job: Json = answer.json()
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    return job


def _names(client: TestClient, dataset_id: str) -> list[str]:
    data = client.get(f"/v1/datasets/{dataset_id}/images").json()["data"]
    return [image["name"] for image in data]


def test_images_are_added(any_client: TestClient, any_runtime: Runtime) -> None:
    dataset_id = upload(any_client, _FIRST)["dataset_id"]
    work_on(any_runtime, any_client.get("/v1/jobs").json()["data"][0]["id"])
    before = any_client.get(f"/v1/datasets/{dataset_id}").json()

    job = _append(any_client, dataset_id, _MORE, labels_from="folder")
    assert any_client.get(f"/v1/datasets/{dataset_id}").json()["status"] == "ingesting"
    work_on(any_runtime, job["id"])

    after = any_client.get(f"/v1/datasets/{dataset_id}").json()
    assert (after["status"], after["image_count"], after["issue_count"]) == ("ready", 4, 1)
    assert (after["labeled_count"], before["labeled_count"]) == (1, 0)
    assert after["bytes"] == before["bytes"] + len(png_bytes("blue")) + len(png_bytes("red"))
    assert after["fingerprint"] != before["fingerprint"]
    assert _names(any_client, dataset_id) == ["a.png", "b.png", "c/c.png", "again.png"]
    done = any_client.get(f"/v1/jobs/{job['id']}").json()
    assert done["counts"] == {"total": 3, "completed": 3, "failed": 1, "skipped": 0}
    assert done["result"] == {
        "dataset_id": dataset_id,
        "image_count": 2,
        "issue_count": 1,
        "skipped_count": 0,
        "skipped": {},
    }


def test_the_same_images_in_parts_are_the_same_dataset(client: TestClient, work: Work) -> None:
    more = {"c.png": png_bytes("blue")}
    whole, parts = upload(client, _FIRST | more), upload(client, _FIRST)
    work(whole["id"])
    work(parts["id"])
    work(_append(client, parts["dataset_id"], more)["id"])
    one, other = (client.get(f"/v1/datasets/{job['dataset_id']}").json() for job in (whole, parts))
    assert one["fingerprint"] == other["fingerprint"]


def test_only_new_images_are_decoded(
    client: TestClient, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(client, _FIRST)
    work(job["id"])
    decoded: list[bytes] = []

    inspect = DecoderPool.inspect

    def counting(pool: DecoderPool, data: bytes) -> ImageFacts:
        decoded.append(data)
        return inspect(pool, data)

    monkeypatch.setattr(DecoderPool, "inspect", counting)
    work(_append(client, job["dataset_id"], {"c.png": png_bytes("blue")})["id"])
    assert decoded == [png_bytes("blue")]


def test_duplicates_have_the_oldest_image_as_original(
    any_client: TestClient, any_runtime: Runtime
) -> None:
    job = upload(any_client, {"1.png": png_bytes(), "2.png": png_bytes(), "x.jpg": jpeg_bytes()})
    work_on(any_runtime, job["id"])
    work_on(any_runtime, _append(any_client, job["dataset_id"], {"3.png": png_bytes()})["id"])
    with any_runtime.db.read() as session:
        names = {row.id: row.name for row in session.execute(select(Image.id, Image.name))}
        rows = session.scalars(select(Duplicate)).all()
    found = sorted((names[row.image_id], names[row.original_id]) for row in rows)
    assert found == [("2.png", "1.png"), ("3.png", "1.png")]
    assert {(row.kind, row.similarity) for row in rows} == {("exact", 1.0)}


def test_a_failed_append_changes_nothing(client: TestClient, work: Work) -> None:
    job = upload(client, _FIRST)
    work(job["id"])
    before = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    bad = {"good.png": png_bytes("blue"), "1.jpg": b"x", "2.jpg": b"x"}
    failed = _append(client, job["dataset_id"], bad)
    work(failed["id"])
    ended = client.get(f"/v1/jobs/{failed['id']}").json()
    assert (ended["status"], ended["error"]["code"]) == ("failed", "too_many_bad_files")
    after = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    kept = ("status", "image_count", "fingerprint", "bytes", "error")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert _names(client, job["dataset_id"]) == list(_FIRST)
    work(_append(client, job["dataset_id"], {"c.png": png_bytes("blue")})["id"])
    assert _names(client, job["dataset_id"]) == [*_FIRST, "c.png"]


def test_new_images_are_invisible_until_the_job_succeeds(
    client: TestClient, work: Work, runtime: Runtime
) -> None:
    job = upload(client, _FIRST)
    work(job["id"])
    with runtime.db.write() as session:  # as if an ingest had stored one and still ran
        row = session.scalars(select(Image)).first()
        assert row is not None
        hidden = {column.name: getattr(row, column.name) for column in Image.__table__.columns}
        session.add(Image(**hidden | {"id": "img_hidden", "position": 7}))
    assert _names(client, job["dataset_id"]) == list(_FIRST)
    assert client.get("/v1/images/img_hidden").status_code == 404


def test_append_to_a_dataset_in_use_is_refused(
    client: TestClient, work: Work, runtime: Runtime
) -> None:
    job = upload(client, _FIRST)
    url = f"/v1/datasets/{job['dataset_id']}/images"
    answer = client.post(url, content=zip_of(_MORE), headers=ZIP)
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset_in_use")
    assert len(list((runtime.settings.blob_dir / "uploads").iterdir())) == 1


def test_append_to_a_failed_dataset(client: TestClient, work: Work) -> None:
    job = upload(client, {"a.jpg": b"text"})
    work(job["id"])
    work(_append(client, job["dataset_id"], _FIRST)["id"])
    dataset = client.get(f"/v1/datasets/{job['dataset_id']}").json()
    assert (dataset["status"], dataset["image_count"], dataset["error"]) == ("ready", 2, None)


def test_a_repeated_append_happens_once(client: TestClient, work: Work) -> None:
    job = upload(client, _FIRST)
    work(job["id"])
    url, key = f"/v1/datasets/{job['dataset_id']}/images", {"Idempotency-Key": "k"}
    one = client.post(url, content=zip_of(_MORE), headers=key | ZIP)
    work(one.json()["id"])
    two = client.post(url, content=zip_of(_MORE), headers=key | ZIP)
    assert one.json() == two.json()
    assert len(_names(client, job["dataset_id"])) == 4
    other = client.post("/v1/datasets", content=zip_of(_MORE), headers=key | ZIP)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


def test_an_unknown_dataset(client: TestClient) -> None:
    answer = client.post("/v1/datasets/ds_none/images", content=zip_of(_MORE), headers=ZIP)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
