"""The difference of two clusterings and its adoption over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import store_clustering, upload, work_on
from tests.images import png_bytes


@pytest.fixture
def dataset_id(any_client: TestClient, any_runtime: Runtime) -> str:
    job = upload(any_client, {f"{i}.png": png_bytes((i, i, i)) for i in range(6)})
    work_on(any_runtime, job["id"])
    return str(job["dataset_id"])


@pytest.fixture
def old(any_client: TestClient, any_runtime: Runtime, dataset_id: str) -> str:
    """Images 0, 3 are `reds`, the others `blues`."""
    clustering = store_clustering(any_runtime, dataset_id, one_in=3)
    for number, label in enumerate(("reds", "blues")):
        body = {"kind": "rename", "cluster_id": number, "label": label}
        url = f"/v1/clusterings/{clustering}/operations"
        assert any_client.post(url, json=body, headers={"If-Match": "*"}).status_code == 201
    return clustering


@pytest.fixture
def new(any_runtime: Runtime, dataset_id: str, old: str) -> str:
    """Images 0, 2, 4 are in cluster 0, the others in cluster 1."""
    return store_clustering(any_runtime, dataset_id, one_in=2)


def _adopt(
    client: TestClient, new: str, old: str, headers: dict[str, str] | None = None, **body: Any
) -> Any:
    body = {"since": old, "since_revision": 3, **body}
    headers = {"If-Match": '"1"'} if headers is None else headers
    return client.post(f"/v1/clusterings/{new}:adopt", json=body, headers=headers)


def _labels(client: TestClient, clustering: str) -> list[str]:
    rows = client.get(f"/v1/clusterings/{clustering}/assignments").json()["data"]
    return [row["label"] for row in rows]


def test_the_changes(any_client: TestClient, old: str, new: str) -> None:
    found = any_client.get(f"/v1/clusterings/{new}/changes", params={"since": old}).json()
    assert (found["revision"], found["since"], found["since_revision"]) == (1, old, 3)
    assert (found["images"], found["added"], found["missing"]) == (6, 0, 0)
    reds, blues, third = found["groups"]
    assert (reds["label"], reds["status"], reds["suggested"]) == ("reds", "vanished", "reject")
    assert (blues["status"], blues["suggested"]) == ("split", "approve")
    assert [part["cluster_id"] for part in blues["into"]] == [0, 1]
    assert (third["status"], third["suggested"]) == ("vanished", "approve")
    assert [each["cluster_id"] for each in found["appeared"]] == [2]

    images = any_client.get(
        f"/v1/clusterings/{new}/changes/0/images",
        params={"since": old, "into": [0], "limit": 1},
    ).json()
    assert [image["name"] for image in images["stayed"]] == ["0.png"]
    assert [(image["name"], image["cluster_id"]) for image in images["left"]] == [("3.png", 1)]
    assert [(image["name"], image["label"]) for image in images["came"]] == [("2.png", "blues")]


def test_adopt(any_client: TestClient, dataset_id: str, old: str, new: str) -> None:
    for _ in range(2):  # the same key: one operation
        answer = _adopt(
            any_client,
            new,
            old,
            {"If-Match": '"1"', "Idempotency-Key": "once"},
            decisions=[{"cluster_id": 1, "decision": "reject"}],
            make_current=True,
            alias="production",
        )
        assert answer.status_code == 201, answer.text
        assert (answer.headers["ETag"], answer.json()["kind"]) == ('"2"', "adopt")
    assert answer.json()["arguments"]["rejected"] == [0, 1]
    assert _labels(any_client, new) == _labels(any_client, old)
    dataset = any_client.get(f"/v1/datasets/{dataset_id}").json()
    assert dataset["current_clustering_id"] == new
    assert any_client.get("/v1/models/cats-dogs").json()["aliases"]["production"] == 2

    url = f"/v1/clusterings/{new}/operations"
    undone = any_client.post(url, json={"kind": "undo"}, headers={"If-Match": '"2"'})
    assert undone.status_code == 201
    assert _labels(any_client, new) == ["cluster 0", "cluster 1"] * 3


def test_nothing_moves_if_it_is_refused(
    any_client: TestClient, any_runtime: Runtime, dataset_id: str, old: str, new: str
) -> None:
    both: dict[str, Any] = {"make_current": True, "alias": "production"}
    other = upload(any_client, {"x.png": png_bytes((9, 9, 9))})
    work_on(any_runtime, other["id"])
    foreign = store_clustering(any_runtime, other["dataset_id"])
    unknown = [{"cluster_id": 9, "decision": "reject"}]
    for answer, status in (
        (_adopt(any_client, new, old, {}, **both), 428),
        (_adopt(any_client, new, old, {"If-Match": '"2"'}, **both), 412),
        (_adopt(any_client, new, old, since_revision=2, **both), 412),
        (_adopt(any_client, new, old, decisions=unknown, **both), 422),
        (_adopt(any_client, new, old, decisions=[{"cluster_id": 0}], **both), 422),
        (_adopt(any_client, new, old, make_current=True, alias="no spaces"), 422),
        (_adopt(any_client, new, new, **both), 422),
        (_adopt(any_client, new, foreign, **both), 422),
        (_adopt(any_client, new, "cl_none", **both), 404),
        (_adopt(any_client, "cl_none", old, **both), 404),
    ):
        assert answer.status_code == status, answer.text
    assert any_client.get(f"/v1/clusterings/{new}").json()["revision"] == 1
    assert any_client.get(f"/v1/datasets/{dataset_id}").json()["current_clustering_id"] == old
    assert "production" not in any_client.get("/v1/models/cats-dogs").json()["aliases"]
