"""How many groups? A sweep over the demo's drawings, killed on its way, and the user's choice."""

import signal
from pathlib import Path
from typing import Any

import pytest

from temi_client import Job, TemiClient
from tests.waiting import wait_for_ends, wait_until

CLIPART = Path(__file__).parents[2] / "demo" / "clipart.zip"
VALUES = [4, 10]


def test_a_user_looks_at_several_clusterings_and_chooses_one(
    service: Any, new_drawings: dict[str, Path], tmp_path: Path
) -> None:
    with service.client() as client:
        upload = client.wait(client.upload_dataset(CLIPART, name="drawings").id)
        settings = {"values": VALUES, "n_heads": 4, "steps": 200}
        started = client.sweep(upload.dataset_id, parameter="n_clusters", **settings)
        wait_until(lambda: list(client.curves(started.id)), "one value is finished", pause=0.1)
        _kill_worker(service, started)

        job = client.wait(started.id)

        dataset = client.dataset(upload.dataset_id)
        found = {each.id: each for each in client.clusterings(dataset_id=dataset.id)}
        points = job.result["points"]
        assert {point["clustering_id"] for point in points} == set(found)
        for point in points:
            _check_clustering(client, point, dataset.image_count)
        names = {point["clustering_id"] for point in points if point["n_clusters"] == 10}
        client.set_current_clustering(dataset.id, *names)
        labels = {row.cluster_id for row in client.labels(dataset.id)}
        assert len(labels) > VALUES[0]
        for point in points:
            model = point["model"]
            answer = client.predict(
                model["name"], [new_drawings["circle"]], version=model["version"]
            )
            assert 0 <= answer.data[0].cluster_id < point["n_clusters"]
        assert client.job_plot(job.id).startswith(b"\x89PNG")
        assert b"<svg" in client.job_plot(job.id, format="svg")


def _check_clustering(client: TemiClient, point: dict[str, Any], images: int) -> None:
    clustering = client.clustering(point["clustering_id"])
    sizes = [cluster.size for cluster in client.clusters(clustering.id)]
    assert len(sizes) == clustering.n_clusters == point["n_clusters"]
    assert sum(sizes) == clustering.image_count == images
    assert clustering.metrics["mean_probability"] == pytest.approx(point["mean_probability"])


def _kill_worker(service: Any, job: Job) -> None:
    victim = service.worker()
    family = [victim, *victim.children(recursive=True)]
    victim.send_signal(signal.SIGKILL)
    wait_for_ends(family)
    service.expire_lease(job.id)
