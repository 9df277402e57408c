"""Plots of a job are drawn without the database."""

import pytest
from sqlalchemy.orm import Session

from app.core.clusterings.plots import render
from app.core.jobs.plots import load_sweep_plot
from app.core.jobs.records import add_curve
from app.core.platform.errors import NotFound
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob


def _add(session: Session, job_id: str, step: int, **value: float) -> None:
    figures = {"conditional_entropy": 0.1, "mean_probability": 0.9, "size_kl": 0.2}
    add_curve(session, job_id, step, {**figures, "accuracy": None, **value})


@pytest.mark.parametrize("parameter", ["n_clusters", "beta"])
def test_a_sweep(any_runtime: Runtime, make_job: MakeJob, parameter: str) -> None:
    job_id = make_job("sweep").id
    with any_runtime.db.write() as session:
        job = session.get_one(Job, job_id)
        job.config = {"parameter": parameter, "train": [{"n_clusters": 5}, {"n_clusters": 8}]}
        job.result = {"suggested": 0.6}
        for step, value in ((1, 0.6), (2, 0.7)):
            _add(session, job_id, step, **{parameter: value, "accuracy": 0.5})
    with any_runtime.db.read() as session:
        drawing = load_sweep_plot(session, session.get_one(Job, job_id))
    assert render(drawing, "png").startswith(b"\x89PNG")


def test_jobs_without_points(any_runtime: Runtime, make_job: MakeJob) -> None:
    for kind, reason in (("cluster", "only a sweep"), ("sweep", "finished no value")):
        job_id = make_job(kind).id
        with any_runtime.db.read() as session, pytest.raises(NotFound, match=reason):
            load_sweep_plot(session, session.get_one(Job, job_id))
