"""Cancelling ends a queued job at once, and a running one at its next heartbeat."""

import pytest

from app.core.platform.errors import JobFinished
from app.core.platform.tables import Dataset
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.job_steps import EXPIRED, cancel_job, claim_job, end_job, send_heartbeat


def test_a_queued_job_is_cancelled_at_once(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job("ingest")
    cancelled = cancel_job(any_runtime, job)
    assert (cancelled.status, cancelled.version) == ("cancelled", 2)
    assert cancelled.finished_at is not None
    assert claim_job(any_runtime, job) is None
    with any_runtime.db.read() as session:
        assert session.get_one(Dataset, job.dataset_id).status == "failed"


def test_a_heartbeat_returns_cancelling(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job)
    assert cancel_job(any_runtime, job).status == "cancelling"
    assert cancel_job(any_runtime, job).status == "cancelling"  # a second cancel is no error
    assert send_heartbeat(any_runtime, job, 1) == "cancelling"
    end_job(any_runtime, job, 1, status="cancelled")
    assert cancel_job(any_runtime, job).status == "cancelled"


def test_an_expired_cancelling_job_is_claimed(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job, lease=EXPIRED)
    cancel_job(any_runtime, job)
    claimed = claim_job(any_runtime, job)
    assert claimed is not None
    assert (claimed.status, claimed.fence, claimed.crashes) == ("cancelling", 2, 0)


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_finished_job_cannot_be_cancelled(
    any_runtime: Runtime, make_job: MakeJob, status: str
) -> None:
    job = make_job()
    claim_job(any_runtime, job)
    end_job(any_runtime, job, 1, status=status)
    with pytest.raises(JobFinished, match=status):
        cancel_job(any_runtime, job)
