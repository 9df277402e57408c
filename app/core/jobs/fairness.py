"""Which tenant's job is next. Tenants take turns, so none waits for another's whole queue.

The tenant with the fewest running jobs comes first, then the one that was served the longest time
ago. Priority and age decide only among the jobs of one tenant: no tenant can overtake another
by asking for a higher priority or by sending more jobs.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, func, literal, select, union, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.tables import Job, TenantTurn

_HELD = ("running", "cancelling")


def tenants_in_turn(session: Session, kinds: Collection[str]) -> list[str]:
    """Tenants that may have a job of these kinds to be claimed, in the order of their turns."""
    running, left_behind = _held(session)
    waiting = set(session.scalars(_waiting_tenants(kinds))) | left_behind
    served_at = _served(session, waiting)
    return sorted(
        waiting, key=lambda tenant: (running.get(tenant, 0), served_at.get(tenant, 0.0), tenant)
    )


def add_tenant(session: Session, tenant: str) -> None:
    """With a tenant's first job, so that a claim only ever has to change the row."""
    _add_unless_there(session, tenant, literal(0.0))


def note_turn(session: Session, tenant: str) -> None:
    """The tenant has been served now. Never waits for another worker that does the same."""
    free = (
        select(TenantTurn.tenant)
        .where(TenantTurn.tenant == tenant)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    served = (
        update(TenantTurn)
        .where(TenantTurn.tenant == free)
        .values(served_at=db_now())
        .returning(TenantTurn.tenant)
        .execution_options(synchronize_session=False)
    )
    if session.scalar(served) is None:
        _add_unless_there(session, tenant, db_now())  # its job is older than the table


def _held(session: Session) -> tuple[dict[str, int], set[str]]:
    """How many jobs of each tenant run, and the tenants whose worker has fallen silent."""
    alive = Job.lease_until >= db_now()
    rows = session.execute(
        select(Job.tenant, func.count().filter(alive), func.count().filter(~alive))
        .where(Job.status.in_(_HELD))
        .group_by(Job.tenant)
    ).all()
    return {tenant: count for tenant, count, _ in rows}, {row[0] for row in rows if row[2]}


def _served(session: Session, tenants: Collection[str]) -> dict[str, float]:
    rows = session.execute(
        select(TenantTurn.tenant, TenantTurn.served_at).where(TenantTurn.tenant.in_(tenants))
    )
    return {tenant: served_at for tenant, served_at in rows}


def _waiting_tenants(kinds: Collection[str]) -> Any:
    """Each tenant once. From one tenant the index leads to the next: the number of queued jobs,
    which may be tens of thousands, does not matter."""
    return union(*(_waiting_of_kind(kind) for kind in sorted(kinds)))


def _waiting_of_kind(kind: str) -> Any:
    first = select(_next_tenant(kind).label("tenant"))
    found = first.cte(f"waiting_{kind}", recursive=True)
    following = select(_next_tenant(kind, after=found.c.tenant)).where(found.c.tenant.is_not(None))
    found = found.union_all(following)
    return select(found.c.tenant).where(found.c.tenant.is_not(None))


def _next_tenant(kind: str, after: ColumnElement[str] | None = None) -> ScalarSelect[str]:
    query = select(Job.tenant).where(Job.status == "queued", Job.kind == kind)
    if after is not None:
        query = query.where(Job.tenant > after)
    return query.order_by(Job.tenant).limit(1).scalar_subquery()


def _add_unless_there(session: Session, tenant: str, served_at: ColumnElement[float]) -> None:
    if session.get(TenantTurn, tenant) is not None:
        return
    on_postgresql = session.get_bind().dialect.name == "postgresql"
    insert = postgresql.insert if on_postgresql else sqlite.insert
    new = insert(TenantTurn).values(tenant=tenant, served_at=served_at)
    session.execute(new.on_conflict_do_nothing())
