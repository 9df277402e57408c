"""What is printed after a job."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from temi_client import Clustering, Dataset
from tests.cli.conftest import Temi, as_json
from tests.client.fake_service import FakeService, event, job, running_service
from tests.client.live import FILES, Live
from tests.images import zip_of

POINTS = [
    {
        "n_clusters": number,
        "occupancy_entropy": 1.0,
        "conditional_entropy": doubt,
        "mean_probability": 1 - doubt / 2,
        "size_kl": 0.0,
        "loss": -1.0,
        "accuracy": None,
        "clustering_id": None if number == 8 else f"cl_{number}",
        "model": None if number == 8 else {"name": "pets", "version": number},
    }
    for number, doubt in ((2, 0.01), (4, 0.02), (8, 1.5))
]


@pytest.fixture
def clustering(live: Live) -> Clustering:
    with live.client() as client:
        return next(client.clusterings())


def test_an_ingest_job(live: Live, temi: Temi, tmp_path: Path) -> None:
    archive = tmp_path / "photos.zip"
    archive.write_bytes(zip_of(FILES))
    with live.working():
        done = temi("datasets", "create", archive, "--wait")
    with live.client() as client:
        dataset: Dataset = next(client.datasets())
    assert "images\t4 read; the dataset has 4" in done.stdout
    assert f"dataset\t{dataset.id}, named photos" in done.stdout
    assert "1 images could not be read" in done.stderr
    assert f"temi datasets issues {dataset.id}\n" in done.stderr
    assert f"temi jobs start cluster {dataset.id} --wait\n" in done.stderr


def test_an_export_job(live: Live, temi: Temi, clustering: Clustering) -> None:
    with live.working():
        done = temi("jobs", "start", "export", clustering.id, "--format", "csv", "--wait")
    assert "images\t4" in done.stdout
    assert "temi exports download exp_" in done.stderr


def test_a_started_job_is_printed_as_its_id(temi: Temi, live: Live) -> None:
    with live.client() as client:
        dataset = next(client.datasets())
    started = temi("jobs", "start", "map", dataset.id)
    (printed,) = started.stdout.split()
    assert f"temi jobs watch {printed}\n" in started.stderr
    shown = temi("jobs", "show", printed).stdout
    assert "status\tqueued" in shown
    assert "config" not in shown
    assert "perplexity" in temi("jobs", "show", printed, "--verbose").stdout
    assert "perplexity" in as_json(temi("jobs", "show", printed, "--json"))["config"]


def _watched(service: FakeService, **fields: Any) -> Result:
    done = event(job("succeeded", **fields), 1)
    service.answer("GET", "/v1/jobs/job_1/events", done, content_type="text/event-stream")
    answer = CliRunner().invoke(app, ["--server", service.url, "jobs", "watch", "job_1"])
    assert answer.exit_code == 0, answer.output
    return answer


def _clustered(service: FakeService, settled: bool, current: str = "cl_1") -> Result:
    clustering = {
        "id": "cl_1",
        "dataset_id": "ds_1",
        "model": {"name": "pets", "version": 3},
        "n_clusters": 4,
        "image_count": 1204,
        "revision": 1,
        "metrics": {
            "temi": {"accuracy": 0.5, "nmi": 0.25, "ari": 0.125},
            "training": {"steps": 600, "loss": -1.0, "settled": settled, "agreement": 0.84},
        },
        "created_at": "2026-01-02T03:04:05Z",
    }
    histogram = {"edges": [0, 1], "counts": [4]}
    statistics = {
        "revision": 1,
        "images": 1204,
        "clusters": 4,
        "empty_clusters": 1,
        "mean_probability": 0.91,
        "sizes": [1000, 200, 4, 0],
        "probabilities": histogram,
        "size_histogram": histogram,
    }
    dataset = {
        "id": "ds_1",
        "name": "pets",
        "status": "ready",
        "current_clustering_id": current,
        "created_at": "2026-01-02T03:04:05Z",
    }
    service.answer("GET", "/v1/datasets/ds_1", dataset)
    service.answer("GET", "/v1/clusterings/cl_1", clustering)
    service.answer("GET", "/v1/clusterings/cl_1/statistics", statistics)
    result = {"clustering_id": "cl_1", "model": {"name": "pets", "version": 3}, "metrics": {}}
    config = {"backbone": "dino_vitb16", "train": {"n_clusters": 4, "n_heads": 16}}
    return _watched(service, result=result, config=config)


def test_a_cluster_job() -> None:
    with running_service() as service:
        done = _clustered(service, settled=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert dict(line for line in lines[1:] if len(line) == 2) == {
        "images": "1,204",
        "clusters": "4, with 4 to 1,000 images each; 1 empty",
        "confidence": "91.0 % mean probability",
        "heads": "84.0 % agreement with their consensus, the model",
        "true labels": "ACC 50.0 %, NMI 25.0 %, ARI 12.5 %",
        "model": "pets, version 3",
        "clustering": "cl_1 at revision 1",
    }
    assert "Not settled" not in done.stderr
    assert "temi clusterings clusters cl_1\n" in done.stderr
    assert "temi predict pets FOLDER\n" in done.stderr
    assert "n_heads" not in done.output


def test_a_second_clustering_changes_no_labels() -> None:
    with running_service() as service:
        first = _clustered(service, settled=True)
        second = _clustered(service, settled=True, current="cl_0")
    assert "temi datasets use" not in first.stderr
    assert "The labels of pets still come from cl_0.\n" in second.stderr
    assert "temi datasets use ds_1 cl_1\n" in second.stderr


def test_a_training_that_has_not_settled() -> None:
    with running_service() as service:
        done = _clustered(service, settled=False)
    assert "Not settled" in done.stderr
    assert (
        "temi jobs start cluster ds_1 --clusters 4 --backbone dino_vitb16 --steps 1200 --wait\n"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("suggested", "reason", "chosen", "model"),
    [
        (4, "Suggested: 4 clusters", "cl_4", "pets/versions/4"),
        (None, "No number is suggested", "CLUSTERING", "MODEL"),
    ],
)
def test_a_sweep_of_numbers(suggested: int | None, reason: str, chosen: str, model: str) -> None:
    result = {"parameter": "n_clusters", "points": POINTS, "suggested": suggested}
    config = {"train": [{"n_clusters": point["n_clusters"]} for point in POINTS]}
    with running_service() as service:
        done = _watched(service, kind="sweep", result=result, config=config)
    _, header, *rows = done.stdout.splitlines()
    assert header.split("\t")[:4] == ["clusters", "confidence", "doubt", "even"]
    assert rows[2].split("\t")[:4] == ["8", "25.0 %", "72.1 %", "8.0"]
    assert reason in rows[3]
    assert "temi jobs plot job_1 --out sweep.png\n" in done.stderr
    assert "To look at the 2 clusters: temi clusterings clusters cl_2\n" in done.stderr
    assert "To look at the 4 clusters: temi clusterings clusters cl_4\n" in done.stderr
    assert "the 8 clusters" not in done.stderr  # not kept
    assert f"temi datasets use ds_1 {chosen}\n" in done.stderr
    assert f"temi predict {model} FOLDER\n" in done.stderr
    assert ("suggested" in rows[1]) == (suggested == 4)


def test_a_sweep_of_betas() -> None:
    points = [{**POINTS[1], "beta": beta} for beta in (0.6, 0.7)]
    for point in points:
        del point["n_clusters"]
    result = {"parameter": "beta", "points": points, "suggested": 0.6}
    config = {"train": [{"n_clusters": 4}, {"n_clusters": 4}]}
    with running_service() as service:
        done = _watched(service, kind="sweep", result=result, config=config)
    assert "Suggested: beta 0.6" in done.stdout
    assert "To look at those of beta 0.7: temi clusterings clusters cl_4\n" in done.stderr


def test_a_result_that_was_deleted() -> None:
    with running_service() as service:
        done = _watched(service, result={"clustering_id": "cl_1"})
    assert "was deleted" in done.stderr
