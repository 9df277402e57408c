"""The table of workers, on both databases."""

import pytest
from sqlalchemy import select, update

from app.core.jobs.workers import (
    Identity,
    count_idle,
    delete_expired,
    deregister,
    is_alive,
    record_heartbeat,
)
from app.core.platform.clock import db_now
from app.core.platform.tables import Worker
from app.core.runtime import Runtime

LEASE = 10.0


def identity(name: str, *takes: str) -> Identity:
    return Identity(
        name=name, host="h", pid=1, takes=takes or ("cpu", "gpu"), device="a CPU", version="1"
    )


def record(runtime: Runtime, worker: Identity, **work: str) -> None:
    with runtime.db.write() as session:
        record_heartbeat(session, worker, **work)


def age_heartbeat(runtime: Runtime, name: str, seconds: float) -> None:
    with runtime.db.write() as session:
        session.execute(
            update(Worker).where(Worker.name == name).values(seen_at=db_now() - seconds)
        )


def names(runtime: Runtime) -> list[str]:
    with runtime.db.read() as session:
        return list(session.scalars(select(Worker.name).where(is_alive(LEASE))))


def test_heartbeats_update_the_row(any_runtime: Runtime) -> None:
    worker = identity("a:1", "gpu")
    record(any_runtime, worker)
    with any_runtime.db.read() as session:
        first = session.get_one(Worker, "a:1")
    assert (first.takes, first.device, first.job_id) == (["gpu"], "a CPU", None)
    age_heartbeat(any_runtime, "a:1", 5)
    record(any_runtime, worker, job_id="job_1", stage="embed")
    with any_runtime.db.read() as session:
        again = session.get_one(Worker, "a:1")
    assert (again.job_id, again.stage) == ("job_1", "embed")
    assert again.started_at == first.started_at
    assert again.seen_at >= first.seen_at


def test_deregistering_deletes_the_row(any_runtime: Runtime) -> None:
    record(any_runtime, identity("a:1"))
    record(any_runtime, identity("b:1"))
    with any_runtime.db.write() as session:
        deregister(session, "a:1")
    assert names(any_runtime) == ["b:1"]


@pytest.mark.parametrize(("silent", "left"), [(2.9, ["a:1", "b:1"]), (3.1, ["b:1"])])
def test_a_row_without_a_heartbeat_for_three_leases_is_deleted(
    any_runtime: Runtime, silent: float, left: list[str]
) -> None:
    for name in ("a:1", "b:1"):
        record(any_runtime, identity(name))
    age_heartbeat(any_runtime, "a:1", silent * LEASE)
    assert sorted(names(any_runtime)) == left
    with any_runtime.db.write() as session:
        delete_expired(session, LEASE)
        assert sorted(session.scalars(select(Worker.name))) == left
    record(any_runtime, identity("a:1"))  # its row was deleted, but it is alive
    assert sorted(names(any_runtime)) == ["a:1", "b:1"]


def test_idle_workers_with_a_resource_are_counted(any_runtime: Runtime) -> None:
    record(any_runtime, identity("all:1"))
    record(any_runtime, identity("gpu:1", "gpu"))
    record(any_runtime, identity("busy:1"), job_id="job_1")
    record(any_runtime, identity("dead:1"))
    age_heartbeat(any_runtime, "dead:1", 60)
    with any_runtime.db.read() as session:
        assert count_idle(session, "gpu", LEASE) == 2
        assert count_idle(session, "cpu", LEASE) == 1
