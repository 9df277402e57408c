"""Which jobs are due for a notification, and how often."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from app.core.jobs.notifications import due_for_notification
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.job_steps import EXPIRED, claim_job, end_job, publish_due, reload_job


def test_notifications_back_off(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    for pause in (5, 10, 15, 20, 60, 60, 60):
        before = time.time()
        assert publish_due(any_runtime) == [job.id]
        after = time.time()
        notify_at = reload_job(any_runtime, job).notify_at
        assert before - 1 < notify_at - pause < after + 1
        with any_runtime.db.write() as session:
            session.execute(update(Job).values(notify_at=notify_at + 600))
        assert publish_due(any_runtime) == []
        with any_runtime.db.write() as session:
            session.execute(update(Job).values(notify_at=0.0))


def test_a_claim_resets_the_back_off(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    publish_due(any_runtime)
    claimed = claim_job(any_runtime, job)
    assert claimed is not None
    assert claimed.notifications == 0


def test_only_queued_and_expired_jobs_are_due(any_runtime: Runtime, make_job: MakeJob) -> None:
    live, expired, waiting, ended = make_job(), make_job(), make_job(), make_job()
    claim_job(any_runtime, live)
    claim_job(any_runtime, expired, lease=EXPIRED)
    claim_job(any_runtime, ended)
    end_job(any_runtime, ended, 1)
    assert sorted(publish_due(any_runtime)) == sorted([expired.id, waiting.id])


def test_a_run_returns_a_bounded_number(any_runtime: Runtime, make_job: MakeJob) -> None:
    ids = {make_job().id for _ in range(40)}
    first, second = publish_due(any_runtime), publish_due(any_runtime)
    assert len(first) == 32
    assert set(first) | set(second) == ids
    assert not set(first) & set(second)


def test_two_workers_do_not_publish_the_same_notification(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    ids = sorted(make_job().id for _ in range(3))
    with ThreadPoolExecutor(1) as pool:
        with any_runtime.db.write() as session:
            first = [job.id for job in due_for_notification(session)]
            other = pool.submit(publish_due, any_runtime)  # waits for our rows
            time.sleep(0.2)
        assert (sorted(first), other.result()) == (ids, [])


@pytest.mark.parametrize("any_settings", ["postgresql"], indirect=True)
def test_a_locked_row_does_not_block_the_others(any_runtime: Runtime, make_job: MakeJob) -> None:
    held, other = make_job(), make_job()
    with any_runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == held.id).values(notifications=0))
        assert publish_due(any_runtime) == [other.id]
    assert publish_due(any_runtime) == [held.id]
