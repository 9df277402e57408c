from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.platform.tables import Duplicate, Image
from app.core.runtime import Runtime
from tests.api.conftest import upload, work_on
from tests.images import jpeg_bytes

Json = dict[str, Any]


@pytest.fixture
def dataset_id(any_client: TestClient, any_runtime: Runtime) -> str:
    """Four images; the third is listed as a near duplicate, the last as an exact one."""
    files = {f"{n}.jpg": jpeg_bytes((60 * n, 0, 0)) for n in range(4)}
    job = upload(any_client, files, name="twice")
    work_on(any_runtime, job["id"])
    with any_runtime.db.write() as session:
        ids = session.scalars(select(Image.id).order_by(Image.position)).all()
        for row, original, kind, similarity in (
            (2, 0, "near", 0.97),
            (3, 1, "near", 0.99),
            (3, 1, "exact", 1.0),
        ):
            session.add(
                Duplicate(
                    image_id=ids[row],
                    original_id=ids[original],
                    kind=kind,
                    dataset_id=job["dataset_id"],
                    similarity=similarity,
                )
            )
    return str(job["dataset_id"])


def names(client: TestClient, dataset_id: str, **params: str) -> list[tuple[str, str, str]]:
    answer = client.get(f"/v1/datasets/{dataset_id}/duplicates", params=params)
    assert answer.status_code == 200, answer.text
    return [(row["name"], row["original_name"], row["kind"]) for row in answer.json()["data"]]


def test_duplicates_by_kind(any_client: TestClient, dataset_id: str) -> None:
    near, exact = ("2.jpg", "0.jpg", "near"), ("3.jpg", "1.jpg", "exact")
    assert names(any_client, dataset_id) == [near, exact]
    assert names(any_client, dataset_id, kind="exact") == [exact]
    assert names(any_client, dataset_id, kind="near") == [near, ("3.jpg", "1.jpg", "near")]


def test_pages_and_fields(any_client: TestClient, dataset_id: str) -> None:
    path = f"/v1/datasets/{dataset_id}/duplicates"
    first = any_client.get(path, params={"limit": 1}).json()
    second = any_client.get(path, params={"limit": 1, "cursor": first["next_cursor"]}).json()
    (row,) = second["data"]
    assert (first["has_more"], second["has_more"]) == (True, False)
    fields = {"image_id", "name", "original_id", "original_name", "kind", "similarity"}
    assert set(row) == fields
    assert row["similarity"] == 1.0


def test_bad_kind_and_unknown_dataset(client: TestClient, dataset: Json) -> None:
    path = f"/v1/datasets/{dataset['id']}/duplicates"
    assert client.get(path, params={"kind": "some"}).status_code == 422
    assert client.get("/v1/datasets/ds_nothing/duplicates").status_code == 404
