"""A user's path through the service over HTTP: upload, cluster, predict."""

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from temi_client import Dataset, JobFailed, TemiClient
from tests.e2e.conftest import wait_until_ready
from tests.waiting import LONG_SECONDS, wait_for_ends, wait_until


@pytest.fixture(scope="module")
def dataset(service: Any, shapes_zip: Path) -> Dataset:
    with service.client() as client:
        job = client.wait(client.upload_dataset(shapes_zip, name="shapes", labels_from="folder").id)
        found: Dataset = client.dataset(job.dataset_id)
        return found


@pytest.fixture(scope="module")
def finished(service: Any, dataset: Dataset) -> Any:
    with service.client() as client:
        return client.wait(client.cluster(dataset.id, 3, model_name="calm", steps=150).id)


def assignments(client: TemiClient, job: Any) -> list[tuple[str, int | None, float]]:
    rows = client.assignments(job.result["clustering_id"])
    return [(row.image_id, row.cluster_id, row.probability) for row in rows]


def test_an_upload_becomes_a_dataset(dataset: Dataset) -> None:
    assert dataset.status == "ready"
    assert (dataset.image_count, dataset.issue_count, dataset.labeled_count) == (90, 0, 90)


def test_a_job_finds_the_groups(service: Any, finished: Any) -> None:
    with service.client() as client:
        clustering = client.clustering(finished.result["clustering_id"])
        clusters = list(client.clusters(clustering.id))
    assert sum(cluster.size for cluster in clusters) == 90
    assert clustering.metrics["temi"]["accuracy"] > 0.9
    assert clustering.metrics["kmeans"]["accuracy"] > 0.3
    assert list(finished.timings) == ["embed", "mine", "train", "evaluate"]


def test_new_images_are_predicted(
    service: Any, finished: Any, new_drawings: dict[str, Path]
) -> None:
    with service.client() as client:
        by_name = {
            row.name: row.cluster_id for row in client.assignments(finished.result["clustering_id"])
        }
        answer = client.predict("calm", list(new_drawings.values()))
    for (shape, _), prediction in zip(new_drawings.items(), answer.data, strict=True):
        group = [cluster for name, cluster in by_name.items() if name.startswith(f"{shape}/")]
        assert prediction.cluster_id == max(set(group), key=group.count)


def test_nothing_is_computed_twice(service: Any, dataset: Dataset, finished: Any) -> None:
    with service.client() as client:
        again = client.wait(client.cluster(dataset.id, 3, model_name="again", steps=2).id)
    assert again.timings["embed"]["skipped"]
    assert again.timings["mine"]["skipped"]
    assert not again.timings["train"]["skipped"]


def test_a_killed_job_resumes_to_the_same_bits(
    service: Any, dataset: Dataset, finished: Any
) -> None:
    with service.client() as client:
        job = client.cluster(dataset.id, 3, model_name="disturbed", steps=150)
        _wait_for_step(client, job.id, 30)
        victim = service.worker()
        family = [victim, *victim.children(recursive=True)]
        victim.send_signal(signal.SIGKILL)
        wait_for_ends(family)
        service.expire_lease(job.id)
        job = client.wait(job.id)
        assert assignments(client, job) == assignments(client, finished)


def test_a_running_job_is_cancelled(service: Any, dataset: Dataset) -> None:
    with service.client() as client:
        job = client.cluster(dataset.id, 3, model_name="cancelled", steps=100_000)
        _wait_for_step(client, job.id, 5)
        assert client.cancel(job.id).status == "cancelling"
        with pytest.raises(JobFailed):
            client.wait(job.id, poll_seconds=0.2)
        assert client.job(job.id).status == "cancelled"


def test_the_api_is_restarted_when_it_dies(service: Any) -> None:
    old = service.api()
    old.send_signal(signal.SIGKILL)
    wait_for_ends([old])
    wait_until_ready(service)
    with service.http() as http:
        assert http.get("/livez").json() == {"alive": True}


def test_stopping_leaves_no_process_behind(start_service: Any) -> None:
    with start_service() as service:
        family = psutil.Process(service.process.pid).children(recursive=True)
        assert len(family) >= 2
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(LONG_SECONDS) == 0
        wait_for_ends(family)


def _wait_for_step(client: TemiClient, job_id: str, step: int) -> None:
    def reached() -> bool:
        progress = client.job(job_id).progress
        return progress.stage == "train" and progress.completed >= step

    wait_until(reached, f"the job gets to step {step}", pause=0.1)
