import io
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.core.jobs.requests.map import map_key
from app.core.platform.tables import Job
from app.core.runtime import Runtime

Json = dict[str, Any]


@pytest.fixture
def job(client: TestClient, dataset: Json) -> Json:
    answer = client.post("/v1/jobs", json={"kind": "map", "dataset_id": dataset["id"]})
    assert answer.status_code == 202, answer.text
    made: Json = answer.json()
    return made


def end(runtime: Runtime, job: Json, status: str) -> None:
    with runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == job["id"]).values(status=status))


def test_a_map_is_requested(job: Json) -> None:
    assert job["kind"] == "map"
    assert job["config"] == {
        "backbone": "efficientnet_lite0",
        "precision": "float32",
        "perplexity": 30.0,
        "seed": 0,
    }
    assert job["progress"]["stages"] == ["embed", "mine", "project"]


def test_a_map_is_downloaded_whole_or_as_a_range(
    client: TestClient, runtime: Runtime, job: Json
) -> None:
    table = pa.table({"image_id": ["a"], "x": pa.array([0.5], pa.float32())})
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    runtime.storage.write(map_key(job["id"]), out.getvalue())
    end(runtime, job, "succeeded")

    answer = client.get(f"/v1/jobs/{job['id']}/map")
    part = client.get(f"/v1/jobs/{job['id']}/map", headers={"Range": "bytes=0-5"})

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.file"
    assert pa.ipc.open_file(answer.content).read_all().equals(table)
    assert (part.status_code, part.content) == (206, b"ARROW1")


def test_an_unfinished_map(client: TestClient, job: Json) -> None:
    answer = client.get(f"/v1/jobs/{job['id']}/map")
    assert (answer.status_code, answer.json()["code"]) == (409, "job_unfinished")


def test_jobs_without_a_map(client: TestClient, runtime: Runtime, dataset: Json, job: Json) -> None:
    other = client.post("/v1/jobs", json={"dataset_id": dataset["id"], "n_clusters": 2}).json()
    assert client.get(f"/v1/jobs/{other['id']}/map").status_code == 404
    assert client.get("/v1/jobs/job_nothing/map").status_code == 404
    end(runtime, job, "failed")
    assert client.get(f"/v1/jobs/{job['id']}/map").status_code == 404


def test_other_kinds_are_checked_before_they_are_queued(client: TestClient, dataset: Json) -> None:
    sweep = {"kind": "sweep", "dataset_id": dataset["id"], "parameter": "n_clusters"}
    bad = client.post("/v1/jobs", json={**sweep, "values": [2, 5]})
    assert (bad.status_code, bad.json()["errors"][0]["field"]) == (422, "values")
    assert client.post("/v1/jobs", json={**sweep, "values": [2, 4]}).status_code == 202
    predict = {"kind": "predict", "model": "nothing", "dataset_id": dataset["id"]}
    assert client.post("/v1/jobs", json=predict).status_code == 404
    assert client.post("/v1/jobs", json={"kind": "finetune", "model": "no"}).status_code == 404
