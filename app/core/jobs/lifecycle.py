"""The life cycle of a job's row: created, claimed, renewed, finished, released, cancelled.

A claim gives the worker a fence number. Each write of a running job names it and has no effect if
another worker has claimed the job since, so a worker that lost its lease can do no harm.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    and_,
    case,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased

from app.core.datasets.rows import abandon_ingest
from app.core.jobs.fairness import add_tenant, record_turn, tenants_in_turn
from app.core.jobs.kinds import KINDS, kinds_for
from app.core.jobs.records import add_log
from app.core.jobs.webhooks import add_delivery
from app.core.platform import tracing
from app.core.platform.audit import acting_key_id
from app.core.platform.clock import db_now
from app.core.platform.errors import JobFinished, LeaseLost, NotFound
from app.core.platform.ids import new_id
from app.core.platform.logs import current_request_id
from app.core.platform.resources import ALL_RESOURCES, BFLOAT16
from app.core.platform.tables import FINAL, Dataset, Job, Shard

CANCELLED = {"code": "cancelled", "detail": "The job was cancelled."}


class JobOptions(Protocol):
    """The options that every job has."""

    @property
    def priority(self) -> int: ...

    @property
    def webhook_url(self) -> str | None: ...


@dataclass(frozen=True)
class Progress:
    """The progress of a stage. `checkpoint`: work was saved since the last report."""

    stage: str
    completed: int
    total: int
    failed: int = 0
    skipped: int = 0
    rate: float | None = None
    checkpoint: bool = False


def create_job(
    session: Session,
    *,
    tenant: str,
    kind: str,
    dataset: Dataset,
    config: dict[str, Any],
    request: JobOptions | None = None,
    memory_bytes: int | None = None,
    stages: Sequence[str] | None = None,
) -> Job:
    """`stages` are by default all of the kind."""
    add_tenant(session, tenant)
    job = Job(
        id=new_id("job"),
        tenant=tenant,
        kind=kind,
        dataset_id=dataset.id,
        dataset_fingerprint=dataset.fingerprint,
        config=config,
        stages=list(stages or KINDS[kind].stages),
        priority=request.priority if request else 0,
        webhook_url=request.webhook_url if request else None,
        request_id=current_request_id(),
        traceparent=tracing.traceparent(),
        created_by=acting_key_id(),
        memory_bytes=memory_bytes,
    )
    session.add(job)
    session.flush()
    if config.get("precision") == BFLOAT16:
        line = "The job waits for a worker with hardware for bfloat16; see /v1/workers."
        add_log(session, job.id, line)
    return job


def get_job(session: Session, tenant: str, job_id: str, *, lock: bool = False) -> Job:
    """Returns the current row, with `lock` locked until the transaction ends."""
    query = select(Job).where(Job.id == job_id, Job.tenant == tenant)
    job = session.scalar(
        query.with_for_update() if lock else query, execution_options={"populate_existing": True}
    )
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def claim_next(
    session: Session,
    *,
    worker: str,
    lease_seconds: float,
    resources: Collection[str] = ALL_RESOURCES,
) -> Job | None:
    """Claims the next job that is queued or whose lease has expired: of the tenant whose turn it
    is, the job with the highest priority, the oldest of several."""
    other, kinds = aliased(Job), kinds_for(resources)
    best = _claimable_with(other, resources).order_by(other.priority.desc(), other.id).limit(1)
    for tenant in tenants_in_turn(session, kinds):
        chosen = (
            best.where(other.tenant == tenant)
            .with_for_update(skip_locked=True)  # another worker is claiming the locked ones
            .scalar_subquery()
        )
        job = claim(session, chosen, worker=worker, lease_seconds=lease_seconds)
        if job is not None:
            return job
    return None


def has_claimable_job(session: Session, resources: Collection[str]) -> bool:
    """Returns whether `claim_next` would find a job."""
    return session.scalar(_claimable_with(Job, resources).limit(1)) is not None


def _claimable_with(job: type[Job], resources: Collection[str]) -> Select[str]:
    found = select(job.id).where(_claimable(job), job.kind.in_(kinds_for(resources)))
    if BFLOAT16 in resources:
        return found
    return found.where(func.coalesce(job.config["precision"].as_string(), "") != BFLOAT16)


def _claimable(job: type[Job]) -> ColumnElement[bool]:
    expired = and_(job.status.in_(["running", "cancelling"]), job.lease_until < db_now())
    return or_(job.status == "queued", expired)


def claim(
    session: Session, job_id: str | ScalarSelect[str], *, worker: str, lease_seconds: float
) -> Job | None:
    """Claims this job if it is queued or its lease has expired."""
    job = session.scalar(
        update(Job)
        .where(Job.id == job_id, _claimable(Job))
        .values(
            status=case((Job.status == "queued", "running"), else_=Job.status),
            crashes=Job.crashes + case((Job.status == "running", 1), else_=0),
            fence=Job.fence + 1,
            lease_until=db_now() + lease_seconds,
            notify_at=db_now() + lease_seconds,
            notifications=0,
            worker=worker,
            started_at=case((Job.started_at.is_(None), db_now()), else_=Job.started_at),
            version=Job.version + 1,
        )
        .returning(Job)
        .execution_options(synchronize_session=False, populate_existing=True)
    )
    if job is not None:
        record_turn(session, job.tenant)
        add_log(session, job.id, f"Claimed by {worker} (attempt {job.fence}).")
    return job


def heartbeat(
    session: Session, job_id: str, fence: int, *, lease_seconds: float, progress: Progress | None
) -> str:
    """Renews the lease and stores the progress; returns the status: running or cancelling."""
    values: dict[str, Any] = {
        "lease_until": db_now() + lease_seconds,
        "notify_at": db_now() + lease_seconds,
    }
    if progress is not None:
        values |= _columns(progress) | {"version": Job.version + 1}
        if progress.checkpoint:
            values["crashes"] = 0
    return _fenced(session, job_id, fence, values)


def finish(
    session: Session,
    job_id: str,
    fence: int,
    *,
    status: str,
    result: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> None:
    """Writes the final status. The caller writes the results in the same transaction."""
    values = {
        "status": status,
        "result": result,
        "error": error,
        "finished_at": db_now(),
        "lease_until": 0.0,
        "version": Job.version + 1,
        **_columns(progress),
    }
    _fenced(session, job_id, fence, values)
    _close(session, session.get_one(Job, job_id, populate_existing=True))


def release(session: Session, job_id: str, fence: int, *, crashed: bool) -> None:
    """Queues a claimed job again; the next attempt uses the artifacts of this one."""
    values = {
        "status": case((Job.status == "running", "queued"), else_=Job.status),
        "crashes": Job.crashes + int(crashed),
        "lease_until": 0.0,
        "notify_at": db_now(),
        "queued_at": db_now(),
        "version": Job.version + 1,
    }
    _fenced(session, job_id, fence, values)
    if crashed:
        line = "The job's process died; the next attempt resumes from what is saved."
        add_log(session, job_id, line, "warning")
    else:
        add_log(session, job_id, "Released by a worker that stops.")


def check_fence(session: Session, job_id: str, fence: int) -> None:
    """Locks the row of a running job, so that it cannot be claimed before the commit."""
    _fenced(session, job_id, fence, {"fence": Job.fence})


def record_timing(
    session: Session, job_id: str, fence: int, stage: str, seconds: float, skipped: bool
) -> None:
    job = session.get_one(Job, job_id)
    timing = {"seconds": round(seconds, 3), "skipped": skipped}
    _fenced(session, job_id, fence, {"timings": {**job.timings, stage: timing}})
    did = "skipped, its result exists" if skipped else "ended"
    add_log(session, job_id, f"Stage {stage} {did} ({seconds:.1f} s).")


def cancel(session: Session, tenant: str, job_id: str) -> Job:
    """Ends a queued job at once; a running job is ended at its worker's next heartbeat."""
    job = get_job(session, tenant, job_id)
    if job.status in FINAL and job.status != "cancelled":
        raise JobFinished(f"The job has already {job.status}; there is nothing to cancel.")
    waits = Job.status == "queued"
    changed = session.scalar(
        update(Job)
        .where(Job.id == job_id, Job.status.in_(["queued", "running"]))
        .values(
            status=case((waits, "cancelled"), else_="cancelling"),
            finished_at=case((waits, db_now()), else_=Job.finished_at),
            version=Job.version + 1,
        )
        .returning(Job.status)
        .execution_options(synchronize_session=False)
    )
    session.refresh(job)
    if changed == "cancelled":
        _close(session, job)
    return job


def _close(session: Session, job: Job) -> None:
    """Does what every end of a job needs, in the transaction that writes it."""
    session.execute(delete(Shard).where(Shard.job_id == job.id))
    if job.kind == "ingest" and job.status != "succeeded":
        abandon_ingest(session, job.dataset_id, job.error or CANCELLED)
    if job.error is not None:
        line = f"Failed with {job.error.get('code')}: {job.error.get('detail')}"
        add_log(session, job.id, line, "error")
    else:
        add_log(session, job.id, f"{job.status.capitalize()}.")
    add_delivery(session, job)


def _columns(progress: Progress | None) -> dict[str, Any]:
    names = ("stage", "completed", "total", "failed", "skipped", "rate")
    return {} if progress is None else {name: getattr(progress, name) for name in names}


def _fenced(session: Session, job_id: str, fence: int, values: dict[str, Any]) -> str:
    status = session.scalar(
        update(Job)
        .where(Job.id == job_id, Job.fence == fence, Job.status.in_(["running", "cancelling"]))
        .values(**values)
        .returning(Job.status)
        .execution_options(synchronize_session=False)
    )
    if status is None:
        raise LeaseLost(f"The lease of job {job_id} with fence {fence} was lost.")
    return status
