"""A running job writes logs and curves only while it holds the job."""

from collections.abc import Callable

import pytest
from sqlalchemy import select

from app.core.jobs import records as job_records
from app.core.jobs.lifecycle import claim
from app.core.platform.errors import LeaseLost
from app.core.platform.tables import Job, JobCurve, JobLog
from app.core.runtime import Runtime
from tests.images import jpeg_bytes, zip_of
from tests.worker.conftest import AddIngest, Claimed
from worker.context import JobContext


@pytest.fixture
def context(any_runtime: Runtime, add_ingest: AddIngest, claimed: Claimed) -> JobContext:
    return claimed(any_runtime, add_ingest(any_runtime, zip_of({"a.jpg": jpeg_bytes()})).id)


def test_log_lines_and_curve_points_are_committed_at_once(context: JobContext) -> None:
    context.log("began")
    context.log("hm", "warning")
    context.add_curve(1, {"loss": 3.0})
    context.add_curve(2, {"loss": 2.0})
    context.add_curve(3, {"loss": 1.0})
    context.delete_curve_after(2)
    context.add_curve(2, {"loss": 2.5})
    with context.runtime.db.read() as session:
        lines = session.execute(select(JobLog.level, JobLog.message).order_by(JobLog.number))
        points = session.execute(select(JobCurve.step, JobCurve.values).order_by(JobCurve.step))
        assert [tuple(line) for line in lines] == [
            ("info", "Claimed by test (attempt 1)."),
            ("info", "began"),
            ("warning", "hm"),
        ]
        assert [tuple(point) for point in points] == [(1, {"loss": 3.0}), (2, {"loss": 2.5})]


def test_an_attempt_that_lost_the_job_writes_nothing(context: JobContext) -> None:
    context.add_curve(5, {"loss": 1.0})
    with context.runtime.db.write() as session:
        session.get_one(Job, context.job.id).lease_until = 0.0
        session.flush()
        assert claim(session, context.job.id, worker="other", lease_seconds=60) is not None
    writes: tuple[Callable[[], None], ...] = (
        lambda: context.log("from the dead"),
        lambda: context.add_curve(5, {"loss": 9.0}),
        lambda: context.delete_curve_after(0),
    )
    for write in writes:
        with pytest.raises(LeaseLost):
            write()
    with context.runtime.db.read() as session:
        lines = session.scalars(select(JobLog.message).order_by(JobLog.number)).all()
        assert lines == ["Claimed by test (attempt 1).", "Claimed by other (attempt 2)."]
        assert session.scalars(select(JobCurve.values)).all() == [{"loss": 1.0}]


def test_log_lines_are_reserved_for_the_end_of_the_job(
    context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_records, "MAX_LINES", 8)
    monkeypatch.setattr(job_records, "LAST_LINES", 3)
    for number in range(10):
        context.log(f"line {number}")
    with context.runtime.db.read() as session:
        messages = session.scalars(select(JobLog.message).order_by(JobLog.number)).all()
    assert messages[1:4] == [f"line {number}" for number in range(3)]
    assert len(messages) == 5


def test_each_stage_is_logged_once(context: JobContext) -> None:
    for total in (5, 5):
        context.start_progress("embed", total=total)
    context.record_timing("embed", 1.25, skipped=False)
    context.start_progress("train", total=100, completed=40)
    context.record_timing("register", 0.01, skipped=True)
    with context.runtime.db.read() as session:
        messages = session.scalars(select(JobLog.message).order_by(JobLog.number)).all()
    assert messages[1:] == [
        "Stage embed started.",
        "Stage embed ended (1.2 s).",
        "Stage train resumed at 40 of 100.",
        "Stage register skipped, its result exists (0.0 s).",
    ]
