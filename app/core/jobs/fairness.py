"""The order of tenants: they take turns, so none waits for the whole queue of another.

The tenant with the fewest running jobs comes first, then the one that was served the longest time
ago. Priority and age decide only among the jobs of one tenant: a higher priority or more jobs
give no advantage over other tenants.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, func, select, union, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.tables import Job, TenantTurn

_CLAIMED = ("running", "cancelling")


def tenants_in_turn(session: Session, kinds: Collection[str]) -> list[str]:
    """Returns the tenants that may have a claimable job of these kinds, in the order of turns."""
    running, expired = _count_claimed(session)
    waiting = set(session.scalars(_waiting_tenants(kinds))) | expired
    served_at = _served_at(session, waiting)
    return sorted(
        waiting, key=lambda tenant: (running.get(tenant, 0), served_at.get(tenant, 0.0), tenant)
    )


def add_tenant(session: Session, tenant: str) -> None:
    """Adds the tenant's row with its first job, so that a claim only updates it."""
    if session.get(TenantTurn, tenant) is not None:
        return
    on_postgresql = session.get_bind().dialect.name == "postgresql"
    insert = postgresql.insert if on_postgresql else sqlite.insert
    session.execute(
        insert(TenantTurn).values(tenant=tenant, served_at=0.0).on_conflict_do_nothing()
    )


def record_turn(session: Session, tenant: str) -> None:
    """Stores that the tenant was served now. Never waits for the lock of another worker."""
    free = (
        select(TenantTurn.tenant)
        .where(TenantTurn.tenant == tenant)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    session.execute(
        update(TenantTurn)
        .where(TenantTurn.tenant == free)
        .values(served_at=db_now())
        .execution_options(synchronize_session=False)
    )


def _count_claimed(session: Session) -> tuple[dict[str, int], set[str]]:
    """Returns the number of running jobs by tenant, and the tenants with an expired lease."""
    alive = Job.lease_until >= db_now()
    rows = session.execute(
        select(Job.tenant, func.count().filter(alive), func.count().filter(~alive))
        .where(Job.status.in_(_CLAIMED))
        .group_by(Job.tenant)
    ).all()
    return {tenant: count for tenant, count, _ in rows}, {row[0] for row in rows if row[2]}


def _served_at(session: Session, tenants: Collection[str]) -> dict[str, float]:
    rows = session.execute(
        select(TenantTurn.tenant, TenantTurn.served_at).where(TenantTurn.tenant.in_(tenants))
    )
    return {tenant: served_at for tenant, served_at in rows}


def _waiting_tenants(kinds: Collection[str]) -> Any:
    """Selects each tenant once, by steps through the index: the time does not depend on the
    number of queued jobs, which may be tens of thousands."""
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
