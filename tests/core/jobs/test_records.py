"""Logs and curves: numbered, bounded, and without repeats after a resume."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from sqlalchemy import select

from app.core.jobs import records as job_records
from app.core.platform.tables import Job, JobCurve, JobLog
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob


def _log(runtime: Runtime, job: Job, *messages: str, level: str = "info") -> None:
    with runtime.db.write() as session:
        for message in messages:
            job_records.add_log(session, job.id, message, level)


def _lines(runtime: Runtime, job: Job) -> Sequence[JobLog]:
    with runtime.db.read() as session:
        return session.scalars(
            select(JobLog).where(JobLog.job_id == job.id).order_by(JobLog.number)
        ).all()


def _points(runtime: Runtime, job: Job) -> dict[int, object]:
    with runtime.db.read() as session:
        found = session.scalars(select(JobCurve).where(JobCurve.job_id == job.id))
        return {point.step: point.values for point in found}


def test_lines_are_numbered_job_by_job(any_runtime: Runtime, make_job: MakeJob) -> None:
    one, other = make_job(), make_job()
    _log(any_runtime, one, "first", "second")
    _log(any_runtime, other, "elsewhere", level="warning")
    _log(any_runtime, one, "third")
    lines = _lines(any_runtime, one)
    assert [(line.number, line.message) for line in lines] == [
        (1, "first"),
        (2, "second"),
        (3, "third"),
    ]
    assert [(line.number, line.level) for line in _lines(any_runtime, other)] == [(1, "warning")]
    assert lines[0].at <= lines[2].at


def test_a_log_has_a_maximum_length(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    with any_runtime.db.write() as session:
        for number in range(10):
            job_records.add_log(session, job.id, f"line {number}", max_lines=5)
    messages = [line.message for line in _lines(any_runtime, job)]
    assert messages[:4] == ["line 0", "line 1", "line 2", "line 3"]
    assert "left out" in messages[4]
    assert len(messages) == 5
    _log(any_runtime, job, "the end")  # lines of the service have their own limit
    assert _lines(any_runtime, job)[-1].message == "the end"


def test_any_text_can_be_logged(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    _log(any_runtime, job, "zero \x00 byte", "bad name \udcff.jpg", "x" * 5000)
    lines = _lines(any_runtime, job)
    assert [line.message for line in lines[:2]] == ["zero \ufffd byte", "bad name ?.jpg"]
    assert len(lines[2].message) == job_records.MAX_CHARACTERS


def test_an_unknown_level_is_refused(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    with pytest.raises(ValueError, match="level"):
        _log(any_runtime, job, "loud", level="screaming")


def test_a_point_of_the_same_step_is_replaced(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    with any_runtime.db.write() as session:
        job_records.add_curve(session, job.id, 10, {"loss": 2.0})
        job_records.add_curve(session, job.id, 20, {"loss": 1.0})
    with any_runtime.db.write() as session:
        job_records.add_curve(session, job.id, 20, {"loss": 1.5})
    assert _points(any_runtime, job) == {10: {"loss": 2.0}, 20: {"loss": 1.5}}


def test_points_after_a_checkpoint_are_deleted(any_runtime: Runtime, make_job: MakeJob) -> None:
    job, other = make_job(), make_job()
    with any_runtime.db.write() as session:
        for step in (10, 20, 30):
            for each in (job, other):
                job_records.add_curve(session, each.id, step, {"loss": 1.0})
        job_records.delete_curve_after(session, job.id, 20)
    assert sorted(_points(any_runtime, job)) == [10, 20]
    assert sorted(_points(any_runtime, other)) == [10, 20, 30]


def test_numbers_of_numpy_and_torch_are_stored(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    values = {
        "loss": np.float32(0.5),
        "heads": np.array([1.0, 2.0]),
        "broken": math.nan,
        "many": [math.inf, 3],
        "count": np.int64(7),
    }
    with any_runtime.db.write() as session:
        job_records.add_curve(session, job.id, 1, values)
    assert _points(any_runtime, job) == {
        1: {"loss": 0.5, "heads": [1.0, 2.0], "broken": None, "many": [None, 3], "count": 7}
    }
