"""The plot of a sweep over HTTP."""

import io

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.api.conftest import Json, add_sweep_points


@pytest.fixture
def sweep(client: TestClient, dataset: Json) -> str:
    body = {"kind": "sweep", "dataset_id": dataset["id"], "parameter": "n_clusters"}
    job = client.post("/v1/jobs", json={**body, "values": [2, 3, 4]})
    assert job.status_code == 202, job.text
    return str(job.json()["id"])


def test_the_plot_shows_the_finished_values(
    client: TestClient, runtime: Runtime, sweep: str
) -> None:
    url = f"/v1/jobs/{sweep}/plots/sweep"
    waiting = client.get(url)
    assert (waiting.status_code, waiting.json()["code"]) == (404, "not_found")
    assert "finished no value" in waiting.json()["detail"]
    add_sweep_points(runtime, sweep, [2, 3])

    png, svg = (client.get(url, params={"format": each}) for each in ("png", "svg"))

    assert png.headers["Content-Type"] == "image/png"
    with Image.open(io.BytesIO(png.content)) as image:
        assert min(image.size) > 200
    assert svg.headers["Content-Type"] == "image/svg+xml"
    assert b"<svg" in svg.content
    assert "default-src 'none'" in svg.headers["Content-Security-Policy"]
    tag = {"If-None-Match": png.headers["ETag"]}
    assert client.get(url, headers=tag).status_code == 304
    assert client.get(f"{url}?format=svg", headers=tag).status_code == 200
    with runtime.db.write() as session:
        job = session.get_one(Job, sweep)
        job.result, job.version = {"suggested": 3}, job.version + 1
    ended = client.get(url, headers=tag)
    assert ended.status_code == 200
    assert ended.content != png.content


def test_jobs_without_this_plot(client: TestClient, dataset: Json, sweep: str) -> None:
    body = {"dataset_id": dataset["id"], "n_clusters": 2}
    other = client.post("/v1/jobs", json=body).json()["id"]
    answer = client.get(f"/v1/jobs/{other}/plots/sweep")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "only a sweep" in answer.json()["detail"]
    assert client.get("/v1/jobs/job_none/plots/sweep").status_code == 404
    assert client.get(f"/v1/jobs/{sweep}/plots/other").status_code == 422
    assert client.get(f"/v1/jobs/{sweep}/plots/sweep?format=gif").status_code == 422
