"""The life cycle of a job, on both databases: one worker at a time, no write without the fence."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.jobs import lifecycle as jobs
from app.core.jobs.lifecycle import Progress
from app.core.platform.clock import db_now
from app.core.platform.errors import LeaseLost, NotFound
from app.core.platform.tables import Dataset, Image, Job
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.job_steps import (
    EXPIRED,
    claim_job,
    end_job,
    publish_due,
    reload_job,
    send_heartbeat,
)


def test_a_new_job_is_queued(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = reload_job(any_runtime, make_job())
    assert (job.status, job.fence, job.version, job.crashes) == ("queued", 0, 1, 0)
    assert job.stages == ["embed", "mine", "train", "evaluate", "register"]
    assert job.created_at == pytest.approx(time.time(), abs=60)


def test_a_job_of_another_tenant_is_not_found(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job(tenant="other")
    with any_runtime.db.write() as session:
        with pytest.raises(NotFound):
            jobs.get_job(session, "t", job.id)
        with pytest.raises(NotFound):
            jobs.cancel(session, "t", job.id)


def test_a_claim_gives_the_fence(any_runtime: Runtime, make_job: MakeJob) -> None:
    claimed = claim_job(any_runtime, make_job(), worker="host:1")
    assert claimed is not None
    assert (claimed.status, claimed.fence, claimed.worker) == ("running", 1, "host:1")
    assert claimed.started_at == pytest.approx(time.time(), abs=60)
    assert claimed.lease_until > time.time()
    assert claimed.version == 2


def test_only_one_of_many_workers_claims_a_job(any_runtime: Runtime, make_job: MakeJob) -> None:
    waiting = [make_job() for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        for job in waiting:
            claims = list(pool.map(lambda _, j=job: claim_job(any_runtime, j), range(8)))
            assert [claim.fence for claim in claims if claim] == [1]


def test_only_one_of_many_workers_claims_an_expired_job(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job()
    claim_job(any_runtime, job, lease=EXPIRED)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda _: claim_job(any_runtime, job), range(8)))
    assert [(claim.fence, claim.crashes) for claim in claims if claim] == [(2, 1)]


def test_a_job_with_a_valid_lease_cannot_be_claimed(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job()
    assert claim_job(any_runtime, job) is not None
    assert claim_job(any_runtime, job) is None


def test_an_expired_job_keeps_its_start_and_counts_crashes(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job()
    first = claim_job(any_runtime, job, lease=EXPIRED)
    second = claim_job(any_runtime, job, lease=EXPIRED)
    third = claim_job(any_runtime, job)
    assert first is not None
    assert second is not None
    assert third is not None
    assert [first.fence, second.fence, third.fence] == [1, 2, 3]
    assert [first.crashes, second.crashes, third.crashes] == [0, 1, 2]
    assert first.started_at == second.started_at == third.started_at


def test_a_checkpoint_resets_the_crashes(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job, lease=EXPIRED)
    claimed = claim_job(any_runtime, job)
    assert claimed is not None
    send_heartbeat(any_runtime, job, claimed.fence, Progress("train", 1, 10))
    assert reload_job(any_runtime, job).crashes == 1
    send_heartbeat(any_runtime, job, claimed.fence, Progress("train", 2, 10, checkpoint=True))
    assert reload_job(any_runtime, job).crashes == 0


def test_a_heartbeat_stores_progress_and_renews_the_lease(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job()
    claim_job(any_runtime, job, lease=1.0)
    assert (
        send_heartbeat(any_runtime, job, 1, Progress("embed", 3, 9, failed=1, rate=2.5))
        == "running"
    )
    shown = reload_job(any_runtime, job)
    assert (shown.stage, shown.completed, shown.total) == ("embed", 3, 9)
    assert (shown.failed, shown.rate, shown.version) == (1, 2.5, 3)
    assert shown.lease_until > time.time() + 30
    send_heartbeat(any_runtime, job, 1)
    assert reload_job(any_runtime, job).version == 3  # no new progress


def _write_timing(session: Session, job_id: str, fence: int) -> None:
    jobs.record_timing(session, job_id, fence, "embed", 1.0, skipped=False)


_WRITES: dict[str, Callable[[Session, str, int], object]] = {
    "heartbeat": lambda s, j, f: jobs.heartbeat(s, j, f, lease_seconds=60, progress=None),
    "progress": lambda s, j, f: jobs.heartbeat(
        s, j, f, lease_seconds=60, progress=Progress("embed", 1, 2, checkpoint=True)
    ),
    "finish": lambda s, j, f: jobs.finish(s, j, f, status="succeeded", result={}),
    "fail": lambda s, j, f: jobs.finish(s, j, f, status="failed", error={"code": "x"}),
    "release": lambda s, j, f: jobs.release(s, j, f, crashed=True),
    "check": jobs.check_fence,
    "timing": _write_timing,
}


@pytest.mark.parametrize("write", _WRITES.values(), ids=_WRITES)
def test_a_stale_fence_changes_nothing(
    any_runtime: Runtime, make_job: MakeJob, write: Callable[[Session, str, int], object]
) -> None:
    job = make_job("ingest")
    claim_job(any_runtime, job, lease=EXPIRED)
    claim_job(any_runtime, job)  # the first worker's lease has expired
    before = vars(reload_job(any_runtime, job)).copy()
    with pytest.raises(LeaseLost), any_runtime.db.write() as session:
        write(session, job.id, 1)
    after = vars(reload_job(any_runtime, job)).copy()
    for row in (before, after):
        row.pop("_sa_instance_state")
    assert after == before
    with any_runtime.db.read() as session:
        assert session.get_one(Dataset, job.dataset_id).status == "ingesting"


@pytest.mark.parametrize("write", _WRITES.values(), ids=_WRITES)
def test_a_finished_job_does_not_change(
    any_runtime: Runtime, make_job: MakeJob, write: Callable[[Session, str, int], object]
) -> None:
    job = make_job()
    claim_job(any_runtime, job)
    end_job(any_runtime, job, 1)
    with pytest.raises(LeaseLost), any_runtime.db.write() as session:
        write(session, job.id, 1)
    assert reload_job(any_runtime, job).status == "succeeded"
    assert claim_job(any_runtime, job) is None


def test_results_and_end_are_one_transaction(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job)
    with any_runtime.db.write() as session:
        done = Progress("register", 5, 5, failed=1)
        jobs.finish(session, job.id, 1, status="succeeded", result={"n": 1}, progress=done)
    ended = reload_job(any_runtime, job)
    assert (ended.status, ended.result, ended.error) == ("succeeded", {"n": 1}, None)
    assert (ended.stage, ended.completed, ended.failed) == ("register", 5, 1)
    assert ended.finished_at == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failed_ingest_leaves_a_failed_dataset(
    any_runtime: Runtime, make_job: MakeJob, status: str
) -> None:
    job = make_job("ingest")
    error = {"code": "archive_invalid", "detail": "Damaged."} if status == "failed" else None
    claim_job(any_runtime, job)
    with any_runtime.db.write() as session:
        jobs.finish(session, job.id, 1, status=status, error=error)
    with any_runtime.db.read() as session:
        dataset = session.get_one(Dataset, job.dataset_id)
        images = session.scalars(select(Image).where(Image.dataset_id == dataset.id)).all()
    assert (dataset.status, dataset.image_count, list(images)) == ("failed", 0, [])
    assert dataset.error == (error or jobs.CANCELLED)


def test_a_failed_cluster_job_leaves_its_dataset_ready(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job("cluster")
    claim_job(any_runtime, job)
    end_job(any_runtime, job, 1, status="failed")
    with any_runtime.db.read() as session:
        assert session.get_one(Dataset, job.dataset_id).status == "ingesting"  # untouched
        assert len(session.scalars(select(Image)).all()) == 1


@pytest.mark.parametrize(("crashed", "crashes"), [(True, 1), (False, 0)])
def test_a_released_job_is_queued(
    any_runtime: Runtime, make_job: MakeJob, crashed: bool, crashes: int
) -> None:
    job = make_job()
    claim_job(any_runtime, job)
    with any_runtime.db.write() as session:
        jobs.release(session, job.id, 1, crashed=crashed)
    assert reload_job(any_runtime, job).status == "queued"
    assert publish_due(any_runtime) == [job.id]
    again = claim_job(any_runtime, job)
    assert again is not None
    assert (again.fence, again.crashes) == (2, crashes)


def test_timings_add_up(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job)
    for stage, skipped in (("embed", True), ("mine", False)):
        with any_runtime.db.write() as session:
            jobs.record_timing(session, job.id, 1, stage, 1.23456, skipped)
    assert reload_job(any_runtime, job).timings == {
        "embed": {"seconds": 1.235, "skipped": True},
        "mine": {"seconds": 1.235, "skipped": False},
    }


def test_the_lease_uses_the_clock_of_the_database(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job, lease=30.0)
    with any_runtime.db.read() as session:
        left = session.scalar(select(Job.lease_until - db_now()).where(Job.id == job.id))
    assert left == pytest.approx(30.0, abs=5)


def test_a_job_in_bfloat16_waits_for_hardware_that_has_it(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job("cluster", precision="bfloat16")
    plain = ("cpu", "gpu")
    with any_runtime.db.write() as session:
        assert not jobs.has_claimable_job(session, plain)
        assert jobs.claim_next(session, worker="w", lease_seconds=60, resources=plain) is None
        able = (*plain, "bfloat16")
        assert jobs.has_claimable_job(session, able)
        taken = jobs.claim_next(session, worker="w", lease_seconds=60, resources=able)
        assert taken is not None
        assert taken.id == job.id
