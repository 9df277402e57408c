"""Predictions for stored images, whole datasets and embeddings."""

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.api.routes.predictions import read_stored_images
from app.core.platform.tables import Embedding, Image
from app.core.runtime import Runtime
from app.core.serving.admission import Admission
from app.core.storage.keys import blob_key
from tests.api.conftest import Json, work_on
from tests.images import png_bytes

_URL = "/v1/models/colors:predict"


@pytest.fixture
def client(trained: Json) -> TestClient:
    found: TestClient = trained["client"]
    return found


@pytest.fixture
def runtime(trained: Json) -> Runtime:
    found: Runtime = trained["runtime"]
    return found


def _image_ids(client: TestClient, count: int) -> list[str]:
    dataset = client.get("/v1/datasets").json()["data"][-1]["id"]
    page = client.get(f"/v1/datasets/{dataset}/images", params={"limit": count}).json()
    return [image["id"] for image in page["data"]]


def test_predict_by_image_ids(client: TestClient, trained: Json) -> None:
    ids = _image_ids(client, 6)
    answer = client.post(_URL, json={"image_ids": ids})
    assert answer.status_code == 200, answer.text
    found = answer.json()["data"]
    assert [prediction["image"] for prediction in found] == ids
    clustering = trained["job"]["result"]["clustering_id"]
    rows = client.get(f"/v1/clusterings/{clustering}/assignments", params={"limit": 1000}).json()
    assigned = {row["image_id"]: row["cluster_id"] for row in rows["data"]}
    assert [prediction["cluster_id"] for prediction in found] == [assigned[i] for i in ids]


def test_an_unknown_image_gets_an_error_entry(client: TestClient) -> None:
    (known,) = _image_ids(client, 1)
    found = client.post(_URL, json={"image_ids": ["img_none", known]}).json()["data"]
    assert found[0]["error"]["code"] == "not_found"
    assert found[0]["cluster_id"] is None
    assert found[1]["error"] is None
    alone = client.post(_URL, json={"image_ids": ["img_none"]}).json()["data"]
    assert alone[0]["error"]["code"] == "not_found"


def test_an_image_of_another_tenant_is_unknown(client: TestClient, runtime: Runtime) -> None:
    ids = _image_ids(client, 2)
    db, storage = runtime.db, runtime.storage
    with Admission(10, 10**6).reserve() as reservation:
        own = read_stored_images(db, storage, "default", ids, reservation)
    with Admission(10, 10**6).reserve() as reservation:
        others = read_stored_images(db, storage, "another", ids, reservation)
    assert all(isinstance(data, bytes) for data in own)
    assert [getattr(data, "code", "") for data in others] == ["not_found"] * 2


def test_embeddings_give_the_labels_of_their_images(client: TestClient, runtime: Runtime) -> None:
    with runtime.db.read() as session:
        folder = session.scalars(select(Embedding.folder)).first()
        ids = session.scalars(select(Image.id).order_by(Image.position).limit(4)).all()
    features = np.load(runtime.storage.path(f"{folder}/features.npy"))[:4]
    params = {"probabilities": "true"}
    by_features = client.post(_URL, json={"embeddings": features.tolist()}, params=params).json()
    by_images = client.post(_URL, json={"image_ids": list(ids)}, params=params).json()
    assert [p["image"] for p in by_features["data"]] == ["0", "1", "2", "3"]
    for one, other in zip(by_features["data"], by_images["data"], strict=True):
        assert one["cluster_id"] == other["cluster_id"]
        np.testing.assert_allclose(one["probabilities"], other["probabilities"], atol=1e-4)


def test_a_dataset_becomes_a_job(client: TestClient, runtime: Runtime) -> None:
    dataset = client.get("/v1/datasets").json()["data"][-1]["id"]
    headers = {"Idempotency-Key": "predict-it"}
    answer = client.post(_URL, json={"dataset_id": dataset}, headers=headers)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["Retry-After"]
    assert (job["kind"], job["status"]) == ("predict", "queued")
    again = client.post(_URL, json={"dataset_id": dataset}, headers=headers)
    assert again.json()["id"] == job["id"]
    work_on(runtime, job["id"])
    ended = client.get(f"/v1/jobs/{job['id']}").json()
    assert ended["status"] == "succeeded", ended["error"]
    assert ended["result"]["model"] == {"name": "colors", "version": 1}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ""),
        ({"image_ids": ["a"], "dataset_id": "b"}, ""),
        ({"image_ids": []}, "image_ids"),
        ({"image_ids": ["a"] * 11}, "image_ids"),
        ({"embeddings": [[1.0, 2.0]]}, "embeddings.0"),
        ({"embeddings": []}, "embeddings"),
        ({"embeddings": [[]] * 51}, "embeddings"),
        ({"embeddings": [[1e300] * 1280]}, "embeddings"),
        ({"embeddings": "many"}, "embeddings"),
        ({"images": ["a"]}, "images"),
    ],
)
def test_other_bodies_are_refused(client: TestClient, body: Json, field: str) -> None:
    answer = client.post(_URL, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
    assert answer.json()["errors"][0]["field"] == field


def test_nan_is_refused(client: TestClient) -> None:
    body = b'{"embeddings": [[' + b",".join([b"NaN"] * 1280) + b"]]}"
    headers = {"Content-Type": "application/json"}
    answer = client.post(_URL, content=body, headers=headers)
    assert answer.status_code == 422, answer.text


def test_an_unknown_dataset(client: TestClient) -> None:
    assert client.post(_URL, json={"dataset_id": "ds_none"}).status_code == 404


def test_missing_bytes_give_image_missing(client: TestClient, runtime: Runtime) -> None:
    (image_id,) = _image_ids(client, 1)
    with runtime.db.read() as session:
        key = blob_key(session.get_one(Image, image_id).sha256)
    data = runtime.storage.read(key)
    runtime.storage.delete(key)
    try:
        answer = client.post(_URL, json={"image_ids": [image_id]})
        assert answer.json()["data"][0]["error"]["code"] == "image_missing"
    finally:
        runtime.storage.write(key, data)


def test_the_deadline_is_enforced(client: TestClient) -> None:
    files = [("files", (str(i), png_bytes())) for i in range(10)]
    assert client.post(_URL, files=files[:1]).status_code == 200  # the model is loaded
    answer = client.post(_URL, files=files, params={"deadline_seconds": 0.0001})
    assert (answer.status_code, answer.json()["code"]) == (429, "deadline_exceeded")
    assert answer.headers["Retry-After"]
