"""Metrics of attempts and stages."""

import threading

import pytest

from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from tests.images import jpeg_bytes, zip_of
from tests.servers import free_port
from tests.waiting import wait_until
from tests.worker.conftest import AddIngest
from tests.worker.job_steps import run_job
from tests.worker.supervision.test_job_supervisor import _children, job_row, running
from worker.context import StageBegan, StageEnded
from worker.supervision.metrics import WorkerMetrics, metrics
from worker.supervision.stage_metrics import StageRecorder


def value(name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0.0


def attempts(outcome: str) -> float:
    return value("temi_worker_attempts_total", kind="ingest", outcome=outcome)


def test_metrics_of_a_crash_and_its_retry(runtime: Runtime, add_ingest: AddIngest) -> None:
    good = jpeg_bytes()
    job = add_ingest(runtime, zip_of({f"{n}.jpg": good + n.to_bytes(2) for n in range(4000)}))
    before = attempts("crashed"), attempts("succeeded")
    stage = {"kind": "ingest", "stage": "ingest"}
    items = value("temi_worker_items_total", **stage)
    done = value("temi_worker_stage_seconds_count", **stage)
    with running(runtime, job):
        assert value("temi_worker_busy", kind="ingest") == 1
        for child in _children():
            child.kill()
        wait_until(lambda: job_row(runtime, job.id).status == "queued")
    assert attempts("crashed") == before[0] + 1
    assert value("temi_worker_busy", kind="ingest") == 0
    assert value("temi_worker_stage_seconds_count", **stage) == done  # it has not ended

    run_job(runtime, job.id, threading.Event())
    assert attempts("succeeded") == before[1] + 1
    assert value("temi_worker_stage_seconds_count", **stage) == done + 1
    # what was not saved when the process was killed was done twice
    assert value("temi_worker_items_total", **stage) >= items + 4000


@pytest.mark.parametrize(
    ("files", "outcome"), [({"a.txt": b"text"}, "failed"), ({"a.jpg": jpeg_bytes()}, "succeeded")]
)
def test_outcomes_of_attempts(
    runtime: Runtime, add_ingest: AddIngest, files: dict[str, bytes], outcome: str
) -> None:
    before = attempts(outcome)
    run_job(runtime, add_ingest(runtime, zip_of(files)).id, threading.Event())
    assert attempts(outcome) == before + 1


def test_a_skipped_stage_has_no_duration() -> None:
    stage = {"kind": "test", "stage": "embed"}
    recorder = StageRecorder("test")
    recorder.on_stage_event(StageEnded("embed", 0.01, skipped=True))
    assert value("temi_worker_stages_skipped_total", **stage) == 1
    assert value("temi_worker_stage_seconds_count", **stage) == 0


def test_the_last_stage_ends_with_its_job() -> None:
    stage = {"kind": "test", "stage": "register"}
    recorder = StageRecorder("test")
    recorder.on_stage_event(StageBegan("register"))
    recorder.close(failed=False)
    assert value("temi_worker_stage_seconds_count", **stage) == 1


def test_a_port_in_use_is_logged(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    taken = settings.model_copy(update={"metrics_port": free_port()})
    for _ in range(2):
        WorkerMetrics().serve(taken)
    assert "metrics_server_failed" in capsys.readouterr().out
