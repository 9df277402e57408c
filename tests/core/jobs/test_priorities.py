"""The job that a worker claims: by priority, then age, and never one with a valid lease."""

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import select, update

from app.core.jobs import lifecycle as jobs
from app.core.platform.tables import Job, JobLog
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.job_steps import EXPIRED, cancel_job, claim_job, end_job
from tests.waiting import LONG_SECONDS


def _with_priority(runtime: Runtime, job: Job, priority: int) -> Job:
    with runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == job.id).values(priority=priority))
    return job


def _claim_next(runtime: Runtime, worker: str = "w") -> Job | None:
    with runtime.db.write() as session:
        return jobs.claim_next(session, worker=worker, lease_seconds=60.0)


def test_the_highest_priority_first_then_the_oldest(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    waiting = [make_job() for _ in range(4)]
    _with_priority(any_runtime, waiting[0], -5)
    _with_priority(any_runtime, waiting[2], 10)
    expected = [waiting[2].id, waiting[1].id, waiting[3].id, waiting[0].id]
    claims = [_claim_next(any_runtime) for _ in range(5)]
    assert [job.id for job in claims if job is not None] == expected
    assert claims[4] is None


def test_an_expired_job_is_ordered_like_the_others(any_runtime: Runtime, make_job: MakeJob) -> None:
    held, expired, ended, fresh = make_job(), make_job(), make_job(), make_job()
    claim_job(any_runtime, held)
    claim_job(any_runtime, expired, lease=EXPIRED)
    claim_job(any_runtime, ended)
    end_job(any_runtime, ended, 1)
    _with_priority(any_runtime, fresh, 1)
    first, second, third = (_claim_next(any_runtime) for _ in range(3))
    assert first is not None
    assert second is not None
    assert (first.id, first.crashes) == (fresh.id, 0)
    assert (second.id, second.fence, second.crashes) == (expired.id, 2, 1)
    assert third is None


def test_an_expired_cancelling_job_is_claimed_next(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job, lease=EXPIRED)
    cancel_job(any_runtime, job)
    claimed = _claim_next(any_runtime)
    assert claimed is not None
    assert (claimed.status, claimed.crashes) == ("cancelling", 0)


def test_many_workers_never_claim_the_same_job(any_runtime: Runtime, make_job: MakeJob) -> None:
    ids = sorted(make_job().id for _ in range(24))

    def work(worker: str) -> list[str]:
        mine = []
        while (job := _claim_next(any_runtime, worker)) is not None:
            mine.append(job.id)
        return mine

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(work, [f"w{n}" for n in range(8)]))
    assert sorted(job_id for mine in taken for job_id in mine) == ids
    with any_runtime.db.read() as session:
        assert set(session.scalars(select(Job.fence))) == {1}


def test_a_claim_does_not_wait_for_another_claim(any_runtime: Runtime, make_job: MakeJob) -> None:
    """SQLite has one writer at a time; on PostgreSQL the second claims the next job."""
    ids = [make_job().id for _ in range(2)]
    with ThreadPoolExecutor(1) as pool:
        with any_runtime.db.write() as session:
            first = jobs.claim_next(session, worker="a", lease_seconds=60.0)
            other = pool.submit(_claim_next, any_runtime, "b")
            if session.get_bind().dialect.name == "postgresql":
                other.result(timeout=LONG_SECONDS)  # while our transaction is still open
        second = other.result(timeout=LONG_SECONDS)
    assert first is not None
    assert second is not None
    assert [first.id, second.id] == ids


def test_the_log_shows_every_claim(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job, worker="a")
    with any_runtime.db.write() as session:
        jobs.release(session, job.id, 1, crashed=True)
    claim_job(any_runtime, job, worker="b")
    with any_runtime.db.write() as session:
        jobs.release(session, job.id, 2, crashed=False)
    claim_job(any_runtime, job, worker="c")
    with any_runtime.db.write() as session:
        error = {"code": "storage_full", "detail": "No space."}
        jobs.finish(session, job.id, 3, status="failed", error=error)
    with any_runtime.db.read() as session:
        found = session.execute(select(JobLog.level, JobLog.message).order_by(JobLog.number))
        lines = [tuple(line) for line in found]
    assert lines == [
        ("info", "Claimed by a (attempt 1)."),
        (
            "warning",
            "The job's process died; the next attempt resumes from what is saved.",
        ),
        ("info", "Claimed by b (attempt 2)."),
        ("info", "Released by a worker that stops."),
        ("info", "Claimed by c (attempt 3)."),
        ("error", "Failed with storage_full: No space."),
    ]
