"""Fair share: a tenant waits for another tenant's running jobs only."""

from collections.abc import Collection

import pytest
from sqlalchemy import delete, insert, text, update

from app.core.jobs import fairness
from app.core.jobs import lifecycle as jobs
from app.core.jobs.kinds import kinds_for
from app.core.platform.resources import RESOURCES
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.core.conftest import MakeDataset, MakeJob
from tests.core.job_steps import EXPIRED, claim_job, end_job

GREEDY, SMALL = "greedy", "small"


def queue(runtime: Runtime, make_job: MakeJob, tenant: str, count: int, priority: int = 0) -> None:
    for _ in range(count):
        job = make_job(tenant=tenant)
        with runtime.db.write() as session:
            session.execute(update(Job).where(Job.id == job.id).values(priority=priority))


def claim(runtime: Runtime, takes: Collection[str] = RESOURCES) -> Job | None:
    with runtime.db.write() as session:
        return jobs.claim_next(session, worker="w", lease_seconds=60.0, resources=takes)


def serve(runtime: Runtime) -> str:
    """Claims and finishes the next job; returns its tenant."""
    job = claim(runtime)
    assert job is not None
    end_job(runtime, job, job.fence)
    return job.tenant


def add_many(runtime: Runtime, make_dataset: MakeDataset, tenant: str, count: int) -> None:
    dataset = make_dataset(["00" * 32], tenant=tenant)
    with runtime.db.write() as session:
        row = {"tenant": tenant, "kind": "cluster", "dataset_id": dataset.id, "config": {}}
        rows = [
            {"id": f"job_{tenant}{n:08d}", "stages": [], "priority": 100, **row}
            for n in range(count)
        ]
        fairness.add_tenant(session, tenant)
        session.execute(insert(Job), rows)


def test_a_hundred_urgent_jobs_delay_another_tenant_by_one_job(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset
) -> None:
    add_many(any_runtime, make_dataset, GREEDY, 100)
    running = claim(any_runtime)
    assert running is not None
    assert running.tenant == GREEDY
    queue(any_runtime, make_job, SMALL, 1, priority=-100)
    end_job(any_runtime, running, running.fence)
    assert serve(any_runtime) == SMALL
    assert serve(any_runtime) == GREEDY


def test_tenants_take_turns_without_running_jobs(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset
) -> None:
    add_many(any_runtime, make_dataset, GREEDY, 50)
    queue(any_runtime, make_job, SMALL, 3)
    order = [serve(any_runtime) for _ in range(8)]
    assert order == [GREEDY, SMALL, GREEDY, SMALL, GREEDY, SMALL, GREEDY, GREEDY]


def test_the_tenant_with_fewer_running_jobs_comes_first(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset
) -> None:
    add_many(any_runtime, make_dataset, GREEDY, 50)
    assert [claim(any_runtime).tenant for _ in range(3)] == [GREEDY] * 3  # type: ignore[union-attr]
    queue(any_runtime, make_job, SMALL, 4)
    found = [claim(any_runtime) for _ in range(4)]
    tenants = [job.tenant for job in found if job is not None]
    # Until both run as many: then the one that was served longer ago is next.
    assert tenants == [SMALL, SMALL, SMALL, GREEDY]


def test_deleting_finished_jobs_gains_no_turn(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset
) -> None:
    queue(any_runtime, make_job, SMALL, 1)
    assert serve(any_runtime) == SMALL
    add_many(any_runtime, make_dataset, GREEDY, 50)
    assert serve(any_runtime) == GREEDY
    with any_runtime.db.write() as session:
        session.execute(delete(Job).where(Job.status == "succeeded"))
    queue(any_runtime, make_job, SMALL, 1)
    assert serve(any_runtime) == SMALL


def test_expired_jobs_gain_no_turn(any_runtime: Runtime, make_job: MakeJob) -> None:
    left = make_job(tenant=GREEDY)
    claim_job(any_runtime, left, lease=EXPIRED)
    queue(any_runtime, make_job, SMALL, 1)
    assert serve(any_runtime) == SMALL
    assert serve(any_runtime) == GREEDY


def test_jobs_of_other_resources_do_not_block_a_worker(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset
) -> None:
    add_many(any_runtime, make_dataset, GREEDY, 50)
    make_job("export", tenant=SMALL)
    job = claim(any_runtime, takes=("cpu",))
    assert job is not None
    assert (job.tenant, job.kind) == (SMALL, "export")
    assert claim(any_runtime, takes=("cpu",)) is None


@pytest.mark.parametrize("takes", [("cpu",), ("cpu", "gpu")])
def test_the_query_does_not_depend_on_the_length_of_the_queue(
    any_runtime: Runtime, make_dataset: MakeDataset, takes: tuple[str, ...]
) -> None:
    add_many(any_runtime, make_dataset, GREEDY, 10_000)
    query = fairness._waiting_tenants(kinds_for(takes))
    compiled = query.compile(any_runtime.db.engine, compile_kwargs={"literal_binds": True})
    with any_runtime.db.write() as session:
        session.execute(text("ANALYZE jobs"))
        if session.get_bind().dialect.name == "sqlite":
            plan = [row[3] for row in session.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))]
            reads = [line for line in plan if " jobs " in f"{line} "]
            assert reads
            assert all("USING COVERING INDEX ix_jobs_status_kind" in line for line in reads)
            return
        explain = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {compiled}")
        (plan,) = session.scalar(explain)
    assert rows_read(plan["Plan"]) < 20


def rows_read(node: dict[str, object]) -> int:
    children = node.get("Plans", [])
    assert isinstance(children, list)
    below = sum(rows_read(child) for child in children)
    if node.get("Relation Name") != "jobs":
        return below
    found = float(str(node["Actual Rows"])) + float(str(node.get("Rows Removed by Filter", 0)))
    return below + round(found * float(str(node["Actual Loops"])))
