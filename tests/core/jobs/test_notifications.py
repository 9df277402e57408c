"""Hints: which jobs the sweeper rings the bell for, and how often."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from app.core.jobs import lifecycle as jobs
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.job_steps import GONE, claim_job, end_job, reload_job, send_hints


def test_hints_back_off(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    for pause in (5, 10, 15, 20, 60, 60, 60):
        before = time.time()
        assert send_hints(any_runtime) == [job.id]
        after = time.time()
        notify_at = reload_job(any_runtime, job).notify_at
        assert before - 1 < notify_at - pause < after + 1
        with any_runtime.db.write() as session:
            session.execute(update(Job).values(notify_at=notify_at + 600))
        assert send_hints(any_runtime) == []
        with any_runtime.db.write() as session:
            session.execute(update(Job).values(notify_at=0.0))


def test_a_claim_makes_hints_quick_again(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    send_hints(any_runtime)
    claimed = claim_job(any_runtime, job)
    assert claimed is not None
    assert claimed.notifications == 0


def test_only_jobs_without_a_living_worker_get_hints(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    live, orphan, waiting, ended = make_job(), make_job(), make_job(), make_job()
    claim_job(any_runtime, live)
    claim_job(any_runtime, orphan, lease=GONE)
    claim_job(any_runtime, ended)
    end_job(any_runtime, ended, 1)
    assert sorted(send_hints(any_runtime)) == sorted([orphan.id, waiting.id])


def test_a_sweep_sends_a_bounded_number(any_runtime: Runtime, make_job: MakeJob) -> None:
    ids = {make_job().id for _ in range(40)}
    first, second = send_hints(any_runtime), send_hints(any_runtime)
    assert len(first) == 32
    assert set(first) | set(second) == ids
    assert not set(first) & set(second)


def test_two_sweepers_do_not_send_the_same_hint(any_runtime: Runtime, make_job: MakeJob) -> None:
    ids = sorted(make_job().id for _ in range(3))
    with ThreadPoolExecutor(1) as pool:
        with any_runtime.db.write() as session:
            first = [job.id for job in jobs.due_for_notification(session)]
            other = pool.submit(send_hints, any_runtime)  # waits for our rows
            time.sleep(0.2)
        assert (sorted(first), other.result()) == (ids, [])


@pytest.mark.parametrize("any_settings", ["postgresql"], indirect=True)
def test_a_row_that_somebody_holds_on_to_keeps_no_other_waiting(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    held, other = make_job(), make_job()
    with any_runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == held.id).values(notifications=0))
        assert send_hints(any_runtime) == [other.id]
    assert send_hints(any_runtime) == [held.id]
