"""Shards of a running job's stage, which any worker may run: offered, claimed, renewed, finished.

The rules are those of jobs: a claim raises the fence and sets a lease by the database's clock,
every later write names the fence, and a shard whose lease has expired is claimed again. The
worker that holds the job offers the shards, and withdraws them when all are done.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, insert, select, update
from sqlalchemy.orm import Session, aliased

from app.core.platform.clock import db_now
from app.core.platform.tables import Job, Shard

_OPEN = Shard.done_at.is_(None)
_RUNNABLE = ("queued", "running")  # also while the job waits for its next worker


@dataclass(frozen=True)
class ShardSpec:
    """The rows of a shard, and the key of the file for its result."""

    key: str
    first: int
    rows: int


@dataclass(frozen=True)
class ShardClaim:
    shard_id: str
    fence: int

    @classmethod
    def of(cls, shard: Shard) -> "ShardClaim":
        return cls(shard.id, shard.fence)


@dataclass(frozen=True)
class ShardCounts:
    """The progress of a stage's shards."""

    open: int
    rows_done: int
    failed: int  # open, but workers crashed too often with them


def offer_shards(
    session: Session, job: Job, stage: str, plan: str, shards: Sequence[ShardSpec], needs: str
) -> None:
    """Replaces the shards of the stage unless they are the same. For the holder of the job."""
    stored = select(Shard.plan, Shard.key).where(_of(job.id, stage)).order_by(Shard.number)
    if [tuple(row) for row in session.execute(stored)] == [(plan, spec.key) for spec in shards]:
        return
    withdraw_shards(session, job.id, stage)
    session.execute(
        insert(Shard),
        [
            {
                "id": f"{job.id}/{stage}/{number}",
                "job_id": job.id,
                "stage": stage,
                "number": number,
                "needs": needs,
                "priority": job.priority,
                "plan": plan,
                **vars(spec),
            }
            for number, spec in enumerate(shards)
        ],
    )


def withdraw_shards(session: Session, job_id: str, stage: str) -> None:
    """Workers that still run one of them lose its lease at their next heartbeat."""
    session.execute(delete(Shard).where(_of(job_id, stage)))


def mark_done(session: Session, job_id: str, stage: str, numbers: Collection[int]) -> None:
    """Sets these shards, whose files exist, to done and the others to open."""
    done = _of(job_id, stage) & Shard.done_at.is_not(None)
    before = set(session.scalars(select(Shard.number).where(done)))
    for number in sorted(before ^ set(numbers)):
        session.execute(
            update(Shard)
            .where(_of(job_id, stage), Shard.number == number)
            .values(done_at=db_now() if number in numbers else None, lease_until=0.0)
        )


def claim_shard(
    session: Session,
    job_id: str,
    stage: str,
    *,
    worker: str,
    lease_seconds: float,
    max_crashes: int,
) -> Shard | None:
    """Claims the next shard of this stage; those with the fewest crashes come first."""
    chosen = _claimable_shards(max_crashes).where(_of(job_id, stage, _Other))
    return _claim(session, chosen, worker, lease_seconds, max_crashes)


def claim_any_shard(
    session: Session,
    resources: Collection[str],
    *,
    worker: str,
    lease_seconds: float,
    max_crashes: int,
    excluded_jobs: Collection[str] = (),
) -> Shard | None:
    """Claims a shard of the tenant with the fewest running shards, of its most urgent job."""
    chosen = _claimable_of_any_job(resources, max_crashes, excluded_jobs)
    return _claim(session, chosen, worker, lease_seconds, max_crashes)


def find_claimable_shard(
    session: Session,
    resources: Collection[str],
    *,
    max_crashes: int,
    excluded_jobs: Collection[str] = (),
) -> Shard | None:
    """Returns the shard that `claim_any_shard` would claim."""
    chosen = _claimable_of_any_job(resources, max_crashes, excluded_jobs)
    return session.get(Shard, session.scalar(chosen) or "")


def renew_shard(session: Session, claim: ShardClaim, lease_seconds: float) -> bool:
    """Renews the lease; returns False if it was lost or the job has ended.

    Also for a shard that was just finished: its process is about to report that.
    """
    status = select(Job.status).where(Job.id == Shard.job_id).scalar_subquery()
    return _update(session, claim, status.in_(_RUNNABLE), lease_until=db_now() + lease_seconds)


def finish_shard(session: Session, claim: ShardClaim) -> bool:
    """Returns False if another worker has claimed the shard since; both files are the same."""
    return _update(session, claim, _OPEN, done_at=db_now())


def release_shard(session: Session, claim: ShardClaim, *, crashed: bool) -> bool:
    return _update(session, claim, _OPEN, lease_until=0.0, crashes=Shard.crashes + int(crashed))


def count_shards(session: Session, job_id: str, stage: str, max_crashes: int) -> ShardCounts:
    unclaimed = and_(_OPEN, Shard.lease_until < db_now())
    found = session.execute(
        select(
            func.count().filter(_OPEN),
            func.coalesce(func.sum(Shard.rows).filter(~_OPEN), 0),
            func.count().filter(unclaimed, _crashes(Shard) >= max_crashes),
        ).where(_of(job_id, stage))
    ).one()
    return ShardCounts(*(int(value) for value in found))


def shards_by_worker(session: Session, job_id: str, stage: str) -> dict[str, int]:
    """Returns the number of shards that each worker has finished."""
    rows = session.execute(
        select(Shard.worker, func.count())
        .where(_of(job_id, stage), Shard.done_at.is_not(None), Shard.worker.is_not(None))
        .group_by(Shard.worker)
        .order_by(Shard.worker)
    )
    return {str(worker): count for worker, count in rows}


_Other = aliased(Shard)


def _of(job_id: str, stage: str, shard: type[Shard] = Shard) -> ColumnElement[bool]:
    return and_(shard.job_id == job_id, shard.stage == stage)


def _crashes(shard: type[Shard]) -> ColumnElement[int]:
    """An expired lease that was not released counts as a crash."""
    return shard.crashes + case((shard.lease_until > 0, 1), else_=0)


def _claimable(shard: type[Shard], max_crashes: int) -> ColumnElement[bool]:
    return and_(
        shard.done_at.is_(None), shard.lease_until < db_now(), _crashes(shard) < max_crashes
    )


_ORDER = (_Other.priority.desc(), _Other.job_id, _crashes(_Other), _Other.number)


def _claimable_shards(max_crashes: int) -> Select[str]:
    return (
        select(_Other.id)
        .join(Job, Job.id == _Other.job_id)
        .where(_claimable(_Other, max_crashes), Job.status.in_(_RUNNABLE))
        .order_by(*_ORDER)
        .limit(1)
    )


def _claimable_of_any_job(
    resources: Collection[str], max_crashes: int, excluded_jobs: Collection[str]
) -> Select[str]:
    """Orders by the number of shards that run for the tenant."""
    claimed, owner = aliased(Shard), aliased(Job)
    running = (
        select(owner.tenant, func.count().label("shards"))
        .join(claimed, claimed.job_id == owner.id)
        .where(claimed.done_at.is_(None), claimed.lease_until >= db_now())
        .group_by(owner.tenant)
        .subquery()
    )
    waiting = _claimable_shards(max_crashes).outerjoin(running, running.c.tenant == Job.tenant)
    chosen = waiting.where(_Other.needs.in_(resources), _Other.job_id.not_in(excluded_jobs))
    return chosen.order_by(None).order_by(func.coalesce(running.c.shards, 0), *_ORDER)


def _claim(
    session: Session, chosen: Select[str], worker: str, lease_seconds: float, max_crashes: int
) -> Shard | None:
    # Locked rows are being claimed by another worker.
    free = chosen.with_for_update(skip_locked=True, of=_Other).scalar_subquery()
    return session.scalar(
        update(Shard)
        .where(Shard.id == free, _claimable(Shard, max_crashes))
        .values(
            crashes=_crashes(Shard),
            fence=Shard.fence + 1,
            lease_until=db_now() + lease_seconds,
            worker=worker,
        )
        .returning(Shard)
        .execution_options(synchronize_session=False, populate_existing=True)
    )


def _update(
    session: Session, claim: ShardClaim, *where: ColumnElement[bool], **values: object
) -> bool:
    changed = session.scalar(
        update(Shard)
        .where(Shard.id == claim.shard_id, Shard.fence == claim.fence, *where)
        .values(**values)
        .returning(Shard.id)
        .execution_options(synchronize_session=False)
    )
    return changed is not None
