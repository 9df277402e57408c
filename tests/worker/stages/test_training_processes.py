"""Training jobs in several processes: the same bits, and no process left behind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist

from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from temi.config import TrainConfig
from tests.conftest import MakeSettings
from tests.waiting import LONG_SECONDS, wait_for_ends, wait_until
from tests.worker.conftest import Claimed
from tests.worker.job_steps import PICTURES, assignments, cluster_job, curve, log_of
from tests.worker.tiny import add_dataset
from worker.jobs.cluster import run_cluster
from worker.stages import curves
from worker.stages.training import count_processes

_CHILD = """
import multiprocessing, os, sys
from app.core.platform.settings import Settings
from tests.worker.tiny import tiny_backbone
from worker.stages import base
from worker.supervision.job_process import main
base.open_extractor = lambda *_args: tiny_backbone()
_, theirs = multiprocessing.Pipe(duplex=False)
settings = Settings(log_format="json", train_processes=3, device="cpu")
main(settings, sys.argv[1], int(sys.argv[2]), theirs, os.getppid())
"""


def run_in(settings: Settings, claimed: Claimed, job: Job) -> Runtime:
    runtime = Runtime(settings)
    run_cluster(claimed(runtime, job.id))
    return runtime


@pytest.mark.usefixtures("tiny")
def test_two_processes_find_the_clusters_of_one(
    make_settings: MakeSettings, claimed: Claimed
) -> None:
    runtime = Runtime(make_settings())
    dataset_id = add_dataset(runtime, PICTURES)
    jobs = [cluster_job(runtime, dataset_id, n_heads=5) for _ in range(2)]

    run_in(make_settings(train_processes=1), claimed, jobs[0]).db.dispose()
    run_in(make_settings(train_processes=2, device="cpu"), claimed, jobs[1]).db.dispose()

    assert "Training in 2 processes." not in log_of(runtime, jobs[0])
    assert "Training in 2 processes." in log_of(runtime, jobs[1])
    assert assignments(runtime, jobs[1]) == assignments(runtime, jobs[0])
    points = [curve(runtime, job) for job in jobs]
    last = max(points[0])
    assert points[1][last] == points[0][last]
    assert len(points[1][last]["losses"]) == 5
    assert not dist.is_initialized()
    assert ranks_of(os.getpid()) == []
    runtime.db.dispose()


@pytest.mark.usefixtures("tiny")
def test_a_job_resumes_with_another_number_of_processes(
    make_settings: MakeSettings, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = Runtime(make_settings(checkpoint_seconds=1e-9))
    several = Runtime(make_settings(checkpoint_seconds=1e-9, train_processes=2, device="cpu"))
    dataset_id = add_dataset(calm, PICTURES)
    jobs = [cluster_job(calm, dataset_id, n_heads=5) for _ in range(2)]
    run_cluster(claimed(calm, jobs[0].id))
    context = claimed(several, jobs[1].id)
    show = curves.TrainingCurve.add

    def crash(self: Any, trainer: Any, report: Any) -> None:
        show(self, trainer, report)
        if report.step > 10:  # a checkpoint of an earlier step exists, none of this one
            raise KeyboardInterrupt

    monkeypatch.setattr(curves.TrainingCurve, "add", crash)
    with pytest.raises(KeyboardInterrupt):
        run_cluster(context)
    assert ranks_of(os.getpid()) == []
    monkeypatch.setattr(curves.TrainingCurve, "add", show)
    with calm.db.write() as session:
        session.get_one(Job, jobs[1].id).lease_until = 0.0

    run_cluster(claimed(calm, jobs[1].id))

    resumed = "Resumed from a checkpoint at step "
    assert any(line.startswith(resumed) for line in log_of(calm, jobs[1]))
    assert assignments(calm, jobs[1]) == assignments(calm, jobs[0])
    several.db.dispose()
    calm.db.dispose()


@contextmanager
def endless_training(runtime: Runtime, claimed: Claimed) -> Iterator[subprocess.Popen[str]]:
    """Yields a job's process once its three training processes have started."""
    job = cluster_job(runtime, add_dataset(runtime, PICTURES), n_heads=6)
    with runtime.db.write() as session:
        row = session.get_one(Job, job.id)
        row.config = row.config | {
            "train": row.config["train"] | {"steps": 10**6, "early_stop": False}
        }
    context = claimed(runtime, job.id)
    command = [sys.executable, "-c", _CHILD, job.id, str(context.fence)]
    data_dir = str(runtime.settings.data_dir)
    environment = os.environ | {"TEMI_DATA_DIR": data_dir}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: curve(runtime, job))
            yield process
        finally:
            process.kill()


def ranks_of(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children()
    return [child for child in children if any("spawn_main" in word for word in child.cmdline())]


def test_a_training_process_that_dies_ends_the_others(runtime: Runtime, claimed: Claimed) -> None:
    with endless_training(runtime, claimed) as process:
        ranks = ranks_of(process.pid)
        assert len(ranks) == 2
        ranks[1].kill()
        _, errors = process.communicate(timeout=LONG_SECONDS)

    assert process.returncode == 1  # a crash for its supervisor
    wait_for_ends(ranks)
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    (died,) = [line for line in lines if line["event"] == "training_process_died"]
    assert died["exit_code"] in (-9, 1)  # the killed one, or the first that noticed


def test_training_processes_end_with_the_job(runtime: Runtime, claimed: Claimed) -> None:
    with endless_training(runtime, claimed) as process:
        ranks = ranks_of(process.pid)
        process.kill()  # as after a cancel or a lost lease
    wait_for_ends(ranks)
    assert len(ranks) == 2


@pytest.mark.parametrize(
    ("gpus", "settings", "n_heads", "expected"),
    [
        (0, {}, 16, 1),
        (0, {"train_processes": 2}, 16, 2),
        (0, {"train_processes": 9}, 16, 8),  # groups of heads are not split on a CPU
        (4, {}, 16, 4),
        (4, {}, 3, 3),
        (4, {"train_processes": 2}, 16, 2),
        (4, {"train_processes": 8}, 16, 4),
        (4, {"device": "cuda:2"}, 16, 1),
        (4, {"device": "cpu"}, 16, 1),
    ],
)
def test_the_number_of_processes(
    gpus: int,
    settings: dict[str, Any],
    n_heads: int,
    expected: int,
    make_settings: MakeSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    config = TrainConfig(n_clusters=3, n_heads=n_heads, batch_size=8)
    assert count_processes(make_settings(**settings), config) == expected
