"""The current clustering of a dataset over HTTP."""

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import store_clustering, upload, work_on
from tests.images import png_bytes
from tests.keys import bearer, make_key


@pytest.fixture
def anna(any_client: TestClient, any_runtime: Runtime) -> None:
    """All requests have a key of this name."""
    _, text = make_key(any_runtime, name="anna", scopes=["read", "write"])
    any_client.headers |= bearer(text)


@pytest.fixture
def dataset_id(any_client: TestClient, any_runtime: Runtime) -> str:
    job = upload(any_client, {f"{i}.png": png_bytes((i, i, i)) for i in range(3)})
    work_on(any_runtime, job["id"])
    return str(job["dataset_id"])


@pytest.mark.usefixtures("anna")
def test_choose_roll_back_and_list(
    any_client: TestClient, any_runtime: Runtime, dataset_id: str
) -> None:
    first, second = (store_clustering(any_runtime, dataset_id, model=name) for name in "ab")
    dataset, url = f"/v1/datasets/{dataset_id}", f"/v1/datasets/{dataset_id}/current-clustering"
    assert any_client.get(dataset).json()["current_clustering_id"] == first
    chosen = any_client.put(url, json={"clustering_id": second})
    assert chosen.json()["current_clustering_id"] == second

    for _ in range(2):  # the same key: one rollback
        answer = any_client.post(f"{url}:rollback", headers={"Idempotency-Key": "once"})
        assert (answer.status_code, answer.json()["current_clustering_id"]) == (200, first)
    answer = any_client.post(f"{url}:rollback")
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_roll_back")

    history = any_client.get(f"{url}/history").json()["data"]
    assert [(c["number"], c["kind"], c["clustering_id"], c["changed_by"]) for c in history] == [
        (3, "rollback", first, "anna"),
        (2, "set", second, "anna"),
        (1, "first", first, None),
    ]


def test_a_clustering_of_another_dataset(
    any_client: TestClient, any_runtime: Runtime, dataset_id: str
) -> None:
    job = upload(any_client, {"x.png": png_bytes((9, 9, 9))})
    work_on(any_runtime, job["id"])
    other = store_clustering(any_runtime, job["dataset_id"])
    url = f"/v1/datasets/{dataset_id}/current-clustering"
    for body, status in (
        ({"clustering_id": other}, 404),
        ({"clustering_id": "cl_none"}, 404),
        ({"clustering_id": "x" * 41}, 422),
        ({}, 422),
    ):
        assert any_client.put(url, json=body).status_code == status
    missing = "/v1/datasets/ds_none/current-clustering"
    assert any_client.put(missing, json={"clustering_id": other}).status_code == 404
    assert any_client.get(f"{missing}/history").status_code == 404
    assert any_client.post(f"{url}:rollback").status_code == 409
