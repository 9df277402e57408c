"""Pieces of a running job that any worker may do: offered, claimed, kept, done.

The rules are those of jobs: a claim raises the fence and sets a lease by the database's clock,
every later write names the fence, and a piece whose lease has run out is claimed again. The
worker that holds the job makes the plan, and removes it when all pieces are done.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, insert, select, update
from sqlalchemy.orm import Session, aliased

from app.core.platform.clock import db_now
from app.core.platform.tables import Job, Shard

_OPEN = Shard.done_at.is_(None)
_ALIVE = ("queued", "running")  # a job that waits for its next worker can be helped meanwhile


@dataclass(frozen=True)
class Piece:
    """Rows of a stage, and the key of the file that is to hold what becomes of them."""

    key: str
    first: int
    rows: int


@dataclass(frozen=True)
class ShardClaim:
    """A claim of a shard."""

    shard_id: str
    fence: int

    @classmethod
    def of(cls, shard: Shard) -> "ShardClaim":
        return cls(shard.id, shard.fence)


@dataclass(frozen=True)
class State:
    """How far the shards of a stage are together."""

    open: int
    rows_done: int
    spent: int  # open, but too many workers have died of them


def offer_shards(
    session: Session, job: Job, stage: str, plan: str, pieces: Sequence[Piece], needs: str
) -> None:
    """By the holder of the job. The same plan that is already there goes on as it is."""
    stored = select(Shard.plan, Shard.key).where(_of(job.id, stage)).order_by(Shard.number)
    if [tuple(row) for row in session.execute(stored)] == [(plan, p.key) for p in pieces]:
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
                **vars(piece),
            }
            for number, piece in enumerate(pieces)
        ],
    )


def withdraw_shards(session: Session, job_id: str, stage: str) -> None:
    """Whoever still works on one of them learns it at the next heartbeat."""
    session.execute(delete(Shard).where(_of(job_id, stage)))


def mark_present(session: Session, job_id: str, stage: str, present: Collection[int]) -> None:
    """Done is what has its file: an earlier attempt, or another job, may have made it."""
    done = _of(job_id, stage) & Shard.done_at.is_not(None)
    before = set(session.scalars(select(Shard.number).where(done)))
    for number in sorted(before ^ set(present)):
        session.execute(
            update(Shard)
            .where(_of(job_id, stage), Shard.number == number)
            .values(done_at=db_now() if number in present else None, lease_until=0.0)
        )


def claim_shard(
    session: Session, job_id: str, stage: str, *, worker: str, lease: float, max_crashes: int
) -> Shard | None:
    """The next one of this stage. Those that nobody has died of come first."""
    chosen = _waiting(max_crashes).where(_of(job_id, stage, _Other))
    return _claim(session, chosen, worker, lease, max_crashes)


def claim_any_shard(
    session: Session,
    takes: Collection[str],
    *,
    worker: str,
    lease: float,
    max_crashes: int,
    beside: Collection[str] = (),
) -> Shard | None:
    """One of the tenant that is helped least, of its most urgent job; none of `beside`."""
    chosen = _waiting_of_any(takes, max_crashes, beside)
    return _claim(session, chosen, worker, lease, max_crashes)


def waiting_shard(
    session: Session, takes: Collection[str], *, max_crashes: int, beside: Collection[str] = ()
) -> Shard | None:
    """What `claim_any_shard` would take, without taking it."""
    chosen = _waiting_of_any(takes, max_crashes, beside)
    return session.get(Shard, session.scalar(chosen) or "")


def keep_shard(session: Session, held: ShardClaim, lease: float) -> bool:
    """A heartbeat; False if it is no longer ours, or if the job is over.

    One that has just been done is still ours: whoever did it is about to say so.
    """
    job = select(Job.status).where(Job.id == Shard.job_id).scalar_subquery()
    return _change(session, held, job.in_(_ALIVE), lease_until=db_now() + lease)


def finish_shard(session: Session, held: ShardClaim) -> bool:
    """False if another worker has claimed it since; its file is as good as ours."""
    return _change(session, held, _OPEN, done_at=db_now())


def release_shard(session: Session, held: ShardClaim, *, crashed: bool) -> bool:
    return _change(session, held, _OPEN, lease_until=0.0, crashes=Shard.crashes + int(crashed))


def read_state(session: Session, job_id: str, stage: str, max_crashes: int) -> State:
    idle = and_(_OPEN, Shard.lease_until < db_now())
    found = session.execute(
        select(
            func.count().filter(_OPEN),
            func.coalesce(func.sum(Shard.rows).filter(~_OPEN), 0),
            func.count().filter(idle, _deaths(Shard) >= max_crashes),
        ).where(_of(job_id, stage))
    ).one()
    return State(*(int(value) for value in found))


def shards_by_worker(session: Session, job_id: str, stage: str) -> dict[str, int]:
    """How many each worker has done."""
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


def _deaths(shard: type[Shard]) -> ColumnElement[int]:
    """A lease that has run out without a word is one more."""
    return shard.crashes + case((shard.lease_until > 0, 1), else_=0)


def _claimable(shard: type[Shard], max_crashes: int) -> ColumnElement[bool]:
    return and_(shard.done_at.is_(None), shard.lease_until < db_now(), _deaths(shard) < max_crashes)


_ORDER = (_Other.priority.desc(), _Other.job_id, _deaths(_Other), _Other.number)


def _waiting(max_crashes: int) -> Select[str]:
    return (
        select(_Other.id)
        .join(Job, Job.id == _Other.job_id)
        .where(_claimable(_Other, max_crashes), Job.status.in_(_ALIVE))
        .order_by(*_ORDER)
        .limit(1)
    )


def _waiting_of_any(
    takes: Collection[str], max_crashes: int, beside: Collection[str]
) -> Select[str]:
    """First of the tenants for whom the fewest pieces are being done."""
    held, owner = aliased(Shard), aliased(Job)
    helped = (
        select(owner.tenant, func.count().label("pieces"))
        .join(held, held.job_id == owner.id)
        .where(held.done_at.is_(None), held.lease_until >= db_now())
        .group_by(owner.tenant)
        .subquery()
    )
    waiting = _waiting(max_crashes).outerjoin(helped, helped.c.tenant == Job.tenant)
    chosen = waiting.where(_Other.needs.in_(takes), _Other.job_id.not_in(beside))
    return chosen.order_by(None).order_by(func.coalesce(helped.c.pieces, 0), *_ORDER)


def _claim(
    session: Session, chosen: Select[str], worker: str, lease: float, max_crashes: int
) -> Shard | None:
    # Another worker has just chosen the ones that are skipped.
    free = chosen.with_for_update(skip_locked=True, of=_Other).scalar_subquery()
    return session.scalar(
        update(Shard)
        .where(Shard.id == free, _claimable(Shard, max_crashes))
        .values(
            crashes=_deaths(Shard),
            fence=Shard.fence + 1,
            lease_until=db_now() + lease,
            worker=worker,
        )
        .returning(Shard)
        .execution_options(synchronize_session=False, populate_existing=True)
    )


def _change(
    session: Session, held: ShardClaim, *where: ColumnElement[bool], **values: object
) -> bool:
    changed = session.scalar(
        update(Shard)
        .where(Shard.id == held.shard_id, Shard.fence == held.fence, *where)
        .values(**values)
        .returning(Shard.id)
        .execution_options(synchronize_session=False)
    )
    return changed is not None
