"""Refused images over HTTP: kept, listed, gathered, decided upon, deleted."""

import hashlib

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from app.core.gathering.keeping import Refusal, keep_refused
from app.core.platform.settings import Settings
from app.core.platform.tables import Job, Model
from app.core.runtime import Runtime
from app.core.storage import store_blob
from tests.api.conftest import Json, MakeClustering, Work
from tests.conftest import MakeSettings
from tests.images import png_bytes
from tests.model_files import DIM
from tests.waiting import wait_until

MODEL = "/v1/models/cats-dogs"
COLORS = ("cyan", "magenta", "yellow", "gray", "orange", "purple")


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    return make_settings(keep_refused=50)


@pytest.fixture(autouse=True)
def clustering_id(dataset: Json, make_clustering: MakeClustering, runtime: Runtime) -> str:
    found = make_clustering(dataset["id"], novelty=True)
    with runtime.db.write() as session:  # no job uses the dataset
        session.execute(update(Job).values(status="succeeded"))
    return found


def _predict(client: TestClient, **params: float | str) -> list[Json]:
    """Images that are unlike the features of the training."""
    files = [("files", (f"{color}.png", png_bytes(color))) for color in COLORS]
    rate = {"false_alarm_rate": 0.01, **params}
    answer = client.post(f"{MODEL}:predict", files=files, params=rate)
    assert answer.status_code == 200, answer.text
    data: list[Json] = answer.json()["data"]
    return data


def _refused(client: TestClient) -> list[Json]:
    data: list[Json] = client.get(f"{MODEL}/refused-images").json()["data"]
    return data


def keep(runtime: Runtime, count: int = 6, *, direction: int = 3) -> None:
    """Similar images, without a prediction."""
    rows = 0.001 * np.random.default_rng(direction).normal(size=(count, DIM))
    rows[:, direction] += 1
    refusals = []
    for number, row in enumerate(rows):
        data = png_bytes((direction, number, 100))
        sha256 = _store(runtime, data)
        refusals.append(
            Refusal(
                name=f"{direction}-{number}.png",
                sha256=sha256,
                width=16,
                height=12,
                format="PNG",
                bytes=len(data),
                novelty=1.0,
                probability=0.5,
                margin=0.1,
                features=row.astype(np.float32),
            )
        )
    with runtime.db.write() as session:
        model = session.scalars(select(Model)).one()
        keep_refused(
            session,
            runtime.settings,
            tenant="default",
            model_id=model.id,
            version=1,
            refusals=refusals,
            quota=None,
        )


def _store(runtime: Runtime, data: bytes) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    store_blob(runtime.storage, sha256, data)
    return sha256


def _gather(client: TestClient, work: Work) -> list[Json]:
    answer = client.post("/v1/jobs", json={"kind": "gather", "model": "cats-dogs"})
    assert answer.status_code == 202, answer.text
    work(answer.json()["id"])
    job = client.get(answer.headers["Location"]).json()
    assert job["status"] == "succeeded", job
    data: list[Json] = client.get(f"{MODEL}/proposals").json()["data"]
    return data


def test_a_refused_upload_is_kept(client: TestClient) -> None:
    plain = _predict(client, keep=False)
    assert {one["label"] for one in plain} == {"none of these"}
    assert _predict(client) == plain  # the same answer
    wait_until(lambda: len(_refused(client)) == len(COLORS))
    _predict(client)  # the same bytes are kept once
    found = _refused(client)
    assert sorted(one["name"] for one in found) == sorted(f"{color}.png" for color in COLORS)
    assert all(one["novelty"] > 0.99 and one["proposal_id"] is None for one in found)
    assert (found[0]["width"], found[0]["height"], found[0]["format"]) == (16, 12, "PNG")
    address = f"/v1/refused-images/{found[0]['id']}"
    content = client.get(f"{address}/content")
    assert content.content == png_bytes(found[0]["name"].removesuffix(".png"))
    assert content.headers["content-type"] == "image/png"
    assert client.get(f"{address}/thumbnail?size=64").headers["content-type"] == "image/webp"
    summary = client.get(f"{MODEL}/refused").json()
    assert summary == {"images": 6, "proposals": 0, "max_images": 50, "days": 30.0}


def test_known_images_and_requests_without_a_rate_are_not_kept(client: TestClient) -> None:
    _predict(client, false_alarm_rate="1e-9", keep=False)
    files = [("files", ("a.png", png_bytes("cyan")))]
    assert client.post(f"{MODEL}:predict", files=files).status_code == 200
    rows = np.random.default_rng(5).normal(size=(1, DIM)).tolist()
    params = {"false_alarm_rate": 0.01}
    client.post(f"{MODEL}:predict", json={"embeddings": rows}, params=params)
    _predict(client)
    wait_until(lambda: len(_refused(client)) == len(COLORS))  # of the last request alone


def test_from_photos_to_a_group(
    client: TestClient, runtime: Runtime, work: Work, clustering_id: str, dataset: Json
) -> None:
    keep(runtime)
    (proposal,) = _gather(client, work)
    assert (proposal["status"], proposal["size"]) == ("open", 6)
    assert proposal["model"] == {"name": "cats-dogs", "version": 1}
    assert 0.99 < proposal["tightness"] <= 1
    assert len(proposal["images"]) == 6
    address = f"/v1/proposals/{proposal['id']}"
    assert client.get(address).json() == proposal
    listed = client.get(f"{MODEL}/refused-images", params={"proposal_id": proposal["id"]}).json()
    assert len(listed["data"]) == 6

    # One photo does not belong there.
    assert client.delete(f"/v1/refused-images/{proposal['images'][-1]['id']}").status_code == 204
    assert client.get(address).json()["size"] == 5

    answer = client.post(f"{address}:accept", json={"new_cluster": "birds"})
    assert answer.status_code == 200, answer.text
    accepted = answer.json()
    assert (accepted["status"], accepted["clustering_id"]) == ("accepted", clustering_id)
    assert (accepted["size"], accepted["images"]) == (5, [])
    assert client.post(f"{address}:accept", json={"new_cluster": "birds"}).json() == accepted
    assert client.post(f"{address}:dismiss").json()["code"] == "proposal_decided"
    group = client.get(f"/v1/clusterings/{clustering_id}/clusters/{accepted['cluster_id']}").json()
    assert (group["label"], group["size"]) == ("birds", 5)
    assert client.get(f"/v1/datasets/{dataset['id']}").json()["image_count"] == 9
    assert client.get(f"{MODEL}/proposals").json()["data"] == []
    decided = client.get(f"{MODEL}/proposals", params={"status": "accepted"}).json()["data"]
    assert [one["id"] for one in decided] == [proposal["id"]]
    for image in group["examples"]:
        assert client.get(f"/v1/images/{image['image_id']}/content").status_code == 200


def test_dismissing(client: TestClient, runtime: Runtime, work: Work) -> None:
    keep(runtime)
    (proposal,) = _gather(client, work)
    answer = client.post(f"/v1/proposals/{proposal['id']}:dismiss")
    assert answer.json()["status"] == "dismissed"
    assert client.post(f"/v1/proposals/{proposal['id']}:dismiss").json() == answer.json()
    assert client.get(f"{MODEL}/refused").json()["images"] == 0
    keep(runtime)
    assert _gather(client, work) == []


def test_deleting_all(client: TestClient, runtime: Runtime, work: Work) -> None:
    keep(runtime)
    (proposal,) = _gather(client, work)
    assert client.delete(f"{MODEL}/refused").status_code == 204
    assert _refused(client) == []
    assert client.get(f"{MODEL}/proposals").json()["data"] == []
    answer = client.post(f"/v1/proposals/{proposal['id']}:accept", json={"new_cluster": "birds"})
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "body", [{}, {"new_cluster": "a", "cluster_id": 1}, {"new_cluster": ""}, {"cluster_id": 99}]
)
def test_a_group_must_be_named(
    client: TestClient, runtime: Runtime, work: Work, body: Json
) -> None:
    keep(runtime)
    (proposal,) = _gather(client, work)
    answer = client.post(f"/v1/proposals/{proposal['id']}:accept", json=body)
    assert answer.status_code == 422
    assert client.get(f"/v1/proposals/{proposal['id']}").json()["status"] == "open"


def test_a_version_that_cannot_gather(
    client: TestClient, dataset: Json, make_clustering: MakeClustering
) -> None:
    make_clustering(dataset["id"], model="old")
    answer = client.post("/v1/jobs", json={"kind": "gather", "model": "old"})
    assert answer.status_code == 422
    assert "has no novelty score" in answer.json()["detail"]


def test_the_decision_is_in_the_audit_log(client: TestClient, runtime: Runtime, work: Work) -> None:
    keep(runtime)
    (proposal,) = _gather(client, work)
    client.post(f"/v1/proposals/{proposal['id']}:dismiss")
    routes = [entry["route"] for entry in client.get("/v1/audit").json()["data"]]
    assert "/v1/proposals/{proposal_id}:dismiss" in routes


def test_a_version_with_a_gather_job_is_not_deleted(client: TestClient, runtime: Runtime) -> None:
    client.post("/v1/jobs", json={"kind": "gather", "model": "cats-dogs"})
    assert client.delete(MODEL).json()["code"] == "version_in_use"
    with runtime.db.read() as session:
        assert session.scalars(select(Job.status).where(Job.kind == "gather")).all() == ["queued"]
