"""The life of a job in the database: created, claimed, kept alive, finished, found again.

A worker that has claimed a job holds a fence number. Each write of a running job names that
number and the write is void if another worker has claimed since, so a worker that was thought
dead can do no harm when it wakes up.
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
from app.core.jobs.fairness import add_tenant, note_turn, tenants_in_turn
from app.core.jobs.kinds import KINDS, kinds_for
from app.core.jobs.records import add_log
from app.core.jobs.webhooks import announce_end
from app.core.platform import tracing
from app.core.platform.audit import acting_key_id
from app.core.platform.clock import db_now
from app.core.platform.errors import JobFinished, LeaseLost, NotFound
from app.core.platform.ids import new_id
from app.core.platform.logs import current_request_id
from app.core.platform.resources import ALL_RESOURCES, BFLOAT16
from app.core.platform.tables import FINAL, OPEN, Dataset, Job, Shard

CANCELLED = {"code": "cancelled", "detail": "The job was cancelled."}
_NOTIFY_BACKOFF = 60.0  # seconds at most between two messages for one waiting job
_NOTIFICATIONS_A_ROUND = 32


class JobOptions(Protocol):
    """What the sender of any job may ask for."""

    @property
    def priority(self) -> int: ...

    @property
    def webhook_url(self) -> str | None: ...


@dataclass(frozen=True)
class Progress:
    """Where a running job is. `checkpoint` says that work was saved since the last report."""

    stage: str
    completed: int
    total: int
    failed: int = 0
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
) -> Job:
    add_tenant(session, tenant)
    job = Job(
        id=new_id("job"),
        tenant=tenant,
        kind=kind,
        dataset_id=dataset.id,
        dataset_fingerprint=dataset.fingerprint,
        config=config,
        stages=list(KINDS[kind].stages),
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
        line = "Waits for a worker whose hardware has instructions for bfloat16; see /v1/workers."
        add_log(session, job.id, line)
    return job


def get_job(session: Session, tenant: str, job_id: str, *, lock: bool = False) -> Job:
    """As it is now. With `lock`, nobody else changes it before this transaction ends."""
    query = select(Job).where(Job.id == job_id, Job.tenant == tenant)
    job = session.scalar(
        query.with_for_update() if lock else query, execution_options={"populate_existing": True}
    )
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def claim(session: Session, job_id: str, *, worker: str, lease_seconds: float) -> Job | None:
    """Take this job if it waits, or if its worker has been silent for a whole lease."""
    return _claim(session, job_id, worker, lease_seconds)


def claim_next(
    session: Session,
    *,
    worker: str,
    lease_seconds: float,
    takes: Collection[str] = ALL_RESOURCES,
) -> Job | None:
    """Take the next job that waits or was left behind: of the tenant whose turn it is the most
    urgent one, the oldest of several."""
    other, kinds = aliased(Job), kinds_for(takes)
    best = _claimable_by(other, takes).order_by(other.priority.desc(), other.id).limit(1)
    for tenant in tenants_in_turn(session, kinds):
        chosen = (
            best.where(other.tenant == tenant)
            .with_for_update(skip_locked=True)  # another worker has just chosen the ones it skips
            .scalar_subquery()
        )
        job = _claim(session, chosen, worker, lease_seconds)
        if job is not None:
            return job
    return None


def one_waits(session: Session, takes: Collection[str]) -> bool:
    """Whether `claim_next` would find a job."""
    return session.scalar(_claimable_by(Job, takes).limit(1)) is not None


def _claimable_by(job: type[Job], takes: Collection[str]) -> Select[str]:
    found = select(job.id).where(_claimable(job), job.kind.in_(kinds_for(takes)))
    if BFLOAT16 in takes:
        return found
    return found.where(func.coalesce(job.config["precision"].as_string(), "") != BFLOAT16)


def _claimable(job: type[Job]) -> ColumnElement[bool]:
    orphaned = and_(job.status.in_(["running", "cancelling"]), job.lease_until < db_now())
    return or_(job.status == "queued", orphaned)


def _claim(
    session: Session, job_id: str | ScalarSelect[str], worker: str, lease_seconds: float
) -> Job | None:
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
        note_turn(session, job.tenant)
        add_log(session, job.id, f"Claimed by {worker} (attempt {job.fence}).")
    return job


def heartbeat(
    session: Session, job_id: str, fence: int, *, lease_seconds: float, progress: Progress | None
) -> str:
    """Keep the lease, tell the progress; returns the status, which may have become cancelling."""
    values: dict[str, Any] = {
        "lease_until": db_now() + lease_seconds,
        "notify_at": db_now() + lease_seconds,
    }
    if progress is not None:
        values |= _shown(progress) | {"version": Job.version + 1}
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
    """The final state, in one transaction with whatever the caller writes of the outcome."""
    values = {
        "status": status,
        "result": result,
        "error": error,
        "finished_at": db_now(),
        "lease_until": 0.0,
        "version": Job.version + 1,
        **_shown(progress),
    }
    _fenced(session, job_id, fence, values)
    _close(session, session.get_one(Job, job_id, populate_existing=True))


def release(session: Session, job_id: str, fence: int, *, crashed: bool) -> None:
    """Give a job back, to be taken up again where its artifacts end."""
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
        line = "The process that did the work died; another attempt goes on from what is saved."
        add_log(session, job_id, line, "warning")
    else:
        add_log(session, job_id, "Given back by a worker that stops.")


def check_fence(session: Session, job_id: str, fence: int) -> None:
    """Guard a transaction of a running job: locks the row, so no claim can pass it."""
    _fenced(session, job_id, fence, {"fence": Job.fence})


def record_timing(
    session: Session, job_id: str, fence: int, stage: str, seconds: float, skipped: bool
) -> None:
    job = session.get_one(Job, job_id)
    timing = {"seconds": round(seconds, 3), "skipped": skipped}
    _fenced(session, job_id, fence, {"timings": {**job.timings, stage: timing}})
    did = "skipped, for its result was there" if skipped else "ended"
    add_log(session, job_id, f"Stage {stage} {did} ({seconds:.1f} s).")


def cancel(session: Session, tenant: str, job_id: str) -> Job:
    """At once if it waits; if it runs, its worker reads the flag at its next heartbeat."""
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


def due_for_notification(session: Session) -> Sequence[Job]:
    """Jobs whose next message is due: waiting ones with back-off, orphaned ones at once."""
    open_job = Job.status.in_(OPEN)
    due = (
        select(Job.id)
        .where(open_job, Job.notify_at <= db_now())
        .order_by(Job.notify_at, Job.id)  # one with a thousand jobs keeps no other waiting
        .limit(_NOTIFICATIONS_A_ROUND)
        .with_for_update(skip_locked=True)  # a locked row keeps no other waiting
        .cte("due")  # not a subquery: PostgreSQL may evaluate one again for every row
    )
    backoff: ColumnElement[float] = case(
        (Job.notifications >= 4, _NOTIFY_BACKOFF), else_=5.0 * (Job.notifications + 1)
    )
    return session.scalars(
        update(Job)
        .where(
            Job.id.in_(select(due.c.id)), Job.notify_at <= db_now()
        )  # again: a sweeper may have been first
        .values(notifications=Job.notifications + 1, notify_at=db_now() + backoff)
        .returning(Job)
        .execution_options(synchronize_session=False)
    ).all()


def _close(session: Session, job: Job) -> None:
    """What belongs to every end of a job, in the transaction that writes it."""
    session.execute(delete(Shard).where(Shard.job_id == job.id))
    if job.kind == "ingest" and job.status != "succeeded":
        abandon_ingest(session, job.dataset_id, job.error or CANCELLED)
    if job.error is not None:
        line = f"Failed with {job.error.get('code')}: {job.error.get('detail')}"
        add_log(session, job.id, line, "error")
    else:
        add_log(session, job.id, f"{job.status.capitalize()}.")
    announce_end(session, job)


def _shown(progress: Progress | None) -> dict[str, Any]:
    if progress is None:
        return {}
    columns = ("stage", "completed", "total", "failed", "rate")
    return {name: getattr(progress, name) for name in columns}


def _fenced(session: Session, job_id: str, fence: int, values: dict[str, Any]) -> str:
    status = session.scalar(
        update(Job)
        .where(Job.id == job_id, Job.fence == fence, Job.status.in_(["running", "cancelling"]))
        .values(**values)
        .returning(Job.status)
        .execution_options(synchronize_session=False)
    )
    if status is None:
        raise LeaseLost(f"Job {job_id} is no longer held with fence {fence}.")
    return status
