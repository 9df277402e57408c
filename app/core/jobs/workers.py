"""The table of workers: each records a heartbeat, and rows without one are deleted."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, delete, select, update
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.tables import Job, Worker

_EXPIRY_LEASES = 3.0  # by then another worker has claimed its job


@dataclass(frozen=True)
class Identity:
    """What does not change while a worker runs."""

    name: str
    host: str
    pid: int
    takes: tuple[str, ...]
    device: str
    version: str


def record_heartbeat(
    session: Session, identity: Identity, *, job_id: str | None = None, stage: str | None = None
) -> None:
    """Updates the worker's row, or adds it: other workers may have deleted it as expired."""
    updated = session.scalar(
        update(Worker)
        .where(Worker.name == identity.name)
        .values(seen_at=db_now(), job_id=job_id, stage=stage)
        .returning(Worker.name)
        .execution_options(synchronize_session=False)
    )
    if updated is None:
        columns = {**vars(identity), "takes": list(identity.takes)}
        session.add(Worker(**columns, job_id=job_id, stage=stage))


def deregister(session: Session, name: str) -> None:
    session.execute(delete(Worker).where(Worker.name == name))


def delete_expired(session: Session, lease_seconds: float) -> None:
    session.execute(delete(Worker).where(~is_alive(lease_seconds)))


def is_alive(lease_seconds: float) -> ColumnElement[bool]:
    return Worker.seen_at > db_now() - _EXPIRY_LEASES * lease_seconds


def worker_resources(session: Session, lease_seconds: float) -> set[str]:
    """Returns the resources of all workers together."""
    found = session.scalars(select(Worker.takes).where(is_alive(lease_seconds)))
    return {resource for takes in found for resource in takes}


def worker_devices(session: Session, lease_seconds: float) -> list[str]:
    """Returns the devices of the workers that train and embed, each once."""
    found = session.execute(select(Worker.device, Worker.takes).where(is_alive(lease_seconds)))
    return sorted({row.device for row in found if "gpu" in row.takes})


def count_idle(session: Session, needs: str, lease_seconds: float) -> int:
    """Returns the number of idle workers with this resource."""
    idle = session.scalars(
        select(Worker.takes).where(Worker.job_id.is_(None), is_alive(lease_seconds))
    )
    return sum(needs in takes for takes in idle)


def select_workers(tenant: str, lease_seconds: float) -> Select[Worker, str]:
    """Workers that are alive, each with the id of its job if that is the tenant's."""
    own_job = and_(Job.id == Worker.job_id, Job.tenant == tenant)
    return select(Worker, Job.id).outerjoin(Job, own_job).where(is_alive(lease_seconds))
