"""Jobs of every kind on a tiny backbone, and their results."""

import threading
from typing import Any

import pytest
from sqlalchemy import select

from app.core.jobs.lifecycle import claim
from app.core.jobs.requests.base import JobCreateBase
from app.core.jobs.requests.cluster import ClusterCreate
from app.core.models import files as model_files
from app.core.platform.settings import Settings
from app.core.platform.tables import Assignment, Clustering, Job, JobCurve, JobLog
from app.core.runtime import Runtime
from tests.worker.tiny import picture, tiny_backbone
from worker.stages import base as stages
from worker.supervision.heartbeat import worker_name
from worker.supervision.job_supervisor import run_claimed_job

COLORS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}
PICTURES = [picture(n, color) for color in COLORS.values() for n in range(10)]
LABELS = [name for name in COLORS for _ in range(10)]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every backbone is the tiny one, in one thread."""
    monkeypatch.setattr(Settings, "threads", 1)
    monkeypatch.setattr(stages, "open_extractor", lambda *_args: tiny_backbone())
    monkeypatch.setattr(model_files, "_load_backbone", lambda *_args: tiny_backbone())


def create(runtime: Runtime, request: JobCreateBase) -> Job:
    with runtime.db.write() as session:
        return request.create(session, "default")


def cluster_job(runtime: Runtime, dataset_id: str, **changes: Any) -> Job:
    settings: dict[str, Any] = {
        "n_clusters": 3,
        "backbone": "tiny",
        "precision": "float32",
        "seed": 0,
    }
    settings |= {"n_heads": 2, "steps": 60, **changes}
    return create(runtime, ClusterCreate(dataset_id=dataset_id, **settings))


def run_job(runtime: Runtime, job_id: str, stopping: threading.Event) -> None:
    """Claims and runs this job, unless another worker holds it."""
    lease_seconds = runtime.settings.lease_seconds
    with runtime.db.write() as session:
        job = claim(session, job_id, worker=worker_name(), lease_seconds=lease_seconds)
    if job is not None:
        run_claimed_job(runtime, job, stopping)


def reload(runtime: Runtime, job: Job) -> Job:
    with runtime.db.read() as session:
        return session.get_one(Job, job.id)


def result_of(runtime: Runtime, job: Job) -> dict[str, Any]:
    done = reload(runtime, job)
    assert done.status == "succeeded"
    assert done.result is not None
    return done.result


def clustering_of(runtime: Runtime, job: Job) -> Clustering:
    with runtime.db.read() as session:
        return session.scalars(select(Clustering).where(Clustering.job_id == job.id)).one()


def assignments(runtime: Runtime, job: Job) -> list[tuple[int, float]]:
    """Returns clusters and probabilities in the order of the dataset."""
    clustering = clustering_of(runtime, job)
    with runtime.db.read() as session:
        rows = session.scalars(
            select(Assignment)
            .where(Assignment.clustering_id == clustering.id)
            .order_by(Assignment.image_id)
        )
        return [(row.cluster_id, row.probability) for row in rows]


def curve(runtime: Runtime, job: Job) -> dict[int, dict[str, Any]]:
    with runtime.db.read() as session:
        rows = session.scalars(
            select(JobCurve).where(JobCurve.job_id == job.id).order_by(JobCurve.step)
        )
        return {row.step: row.values for row in rows}


def log_of(runtime: Runtime, job: Job) -> list[str]:
    with runtime.db.read() as session:
        rows = select(JobLog.message).where(JobLog.job_id == job.id).order_by(JobLog.number)
        return list(session.scalars(rows))
