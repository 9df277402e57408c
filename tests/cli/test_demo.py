"""`temi demo`: reuse of earlier results, and the embedded service."""

from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from app.cli import app
from app.cli.embedded_service import free_port
from tests.client.fake_service import FakeService, Request, Response, job, page, running_service

ARCHIVE = Path(__file__).resolve().parents[2] / "demo" / "clipart.zip"
CREATED = "2026-01-02T03:04:05Z"
DATASET = {
    "id": "ds_1",
    "name": "demo-clipart",
    "status": "ready",
    "image_count": 425,
    "bytes": ARCHIVE.stat().st_size,
    "created_at": CREATED,
}
CONFIG = {"backbone": "efficientnet_lite0", "train": {"n_clusters": 10, "seed": 0}}
SCORES = {"accuracy": 0.75, "nmi": 0.7, "ari": 0.6, "n_labeled": 425}
CLUSTERING = {
    "id": "cl_1",
    "job_id": "job_1",
    "dataset_id": "ds_1",
    "model": {"name": "demo-clipart", "version": 1},
    "n_clusters": 10,
    "image_count": 425,
    "revision": 1,
    "metrics": {"temi": SCORES, "kmeans": SCORES | {"accuracy": 0.5}},
    "created_at": CREATED,
}
CLUSTER: dict[str, Any] = {
    "cluster_id": 0,
    "label": "cluster 0",
    "size": 40,
    "mean_probability": 0.8,
    "examples": [{"image_id": "img_1", "name": "fruit/apple.jpg", "probability": 0.99}],
}


ASSIGNMENTS = [
    {"image_id": f"img_{n}", "name": name, "cluster_id": 0, "label": "cluster 0", "probability": 1}
    for n, name in enumerate(["fruit/apple.jpg", "fruit/pear.jpg", "birds/owl.jpg"])
]


def predict(request: Request) -> Response:
    names = [
        line.split(b'filename="')[1].split(b'"')[0].decode()
        for line in request.body.split(b"\r\n")
        if b'filename="' in line
    ]
    found = {"cluster_id": 0, "label": "cluster 0", "probability": 0.9}
    data = [{"image": name, **found} for name in names]
    return Response({"model": {"name": "demo-clipart", "version": 1}, "data": data})


def service_after_a_first_run(service: FakeService) -> None:
    done = job("succeeded", config=CONFIG, result={"clustering_id": "cl_1"})
    other = job("succeeded", id="job_2", config={**CONFIG, "backbone": "timm:other"})
    service.answer("GET", "/readyz", {"ready": True, "checks": {}})
    service.answer("GET", "/v1/datasets", page(DATASET))
    service.answer("GET", "/v1/jobs", page(other, done))
    service.answer("GET", "/v1/clusterings/cl_1", CLUSTERING)
    service.answer("GET", "/v1/clusterings/cl_1/clusters", page(CLUSTER))
    service.answer("GET", "/v1/clusterings/cl_1/assignments", page(*ASSIGNMENTS))
    service.routes["POST", "/v1/models/demo-clipart/versions/1:predict"] = predict


def test_a_second_run_reuses_the_results() -> None:
    with running_service() as service:
        service_after_a_first_run(service)
        answer = CliRunner().invoke(app, ["--server", service.url, "demo"])
    assert answer.exit_code == 0, answer.output
    posted = [request.path for request in service.requests if request.method == "POST"]
    assert posted == ["/v1/models/demo-clipart/versions/1:predict"]
    assert "75.0 %" in answer.stdout  # TEMI, and k-means below
    assert "50.0 %" in answer.stdout
    assert "cluster 0: fruit" in answer.stdout  # the majority group of the predicted cluster
    assert "road_signs" in answer.stdout  # the true group of a held-back image
    assert f"{service.url}/docs" in answer.stdout


def test_a_failed_upload_is_retried_with_another_key() -> None:
    with running_service() as service:
        service_after_a_first_run(service)
        keys: list[str] = []

        def upload(request: Request) -> Response:
            keys.append(request.headers["idempotency-key"])
            return Response(job("queued", id=f"job_up{len(keys)}"), 202)

        service.answer("GET", "/v1/datasets", page())
        service.routes["POST", "/v1/datasets"] = upload
        service.answer("GET", "/v1/datasets/ds_1", DATASET)
        service.answer("GET", "/v1/jobs/job_up1", job("failed", id="job_up1"))
        service.answer("GET", "/v1/jobs/job_up2", job("succeeded", id="job_up2"))
        answer = CliRunner().invoke(app, ["--server", service.url, "demo"])
    assert answer.exit_code == 0, answer.output
    assert len(set(keys)) == 2
    assert keys[0].startswith("demo-upload-")


def test_a_service_that_does_not_start_is_reported_with_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEMI_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TEMI_LOG_FORMAT", "no-such-format")
    no_server = f"http://127.0.0.1:{free_port(0)}"
    answer = CliRunner().invoke(app, ["--server", no_server, "demo"])
    assert answer.exit_code == 1
    assert "The service ended with exit code" in answer.stderr
    assert "TEMI_LOG_FORMAT" in answer.stderr
    children = psutil.Process().children(recursive=True)
    assert not any("app.cli.main" in child.cmdline() for child in children)
