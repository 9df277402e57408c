"""Workers claim jobs that need one of their resources."""

import pytest
from sqlalchemy import text

from app.core.jobs import lifecycle as jobs
from app.core.jobs.kinds import KINDS, kinds_for
from app.core.platform.resources import RESOURCES
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.job_steps import EXPIRED, claim_job


def next_job(runtime: Runtime, *takes: str) -> str | None:
    with runtime.db.write() as session:
        job = jobs.claim_next(session, worker="w", lease_seconds=60.0, resources=takes)
        return job.id if job else None


def waits(runtime: Runtime, *takes: str) -> bool:
    with runtime.db.read() as session:
        return jobs.has_claimable_job(session, takes)


def test_every_kind_has_a_worker_that_runs_it() -> None:
    assert {kind.resource for kind in KINDS.values()} == set(RESOURCES)
    assert kinds_for(RESOURCES) == list(KINDS)
    assert sorted(kinds_for(["cpu"])) == ["export", "gather", "ingest", "map"]


def test_a_worker_claims_only_kinds_of_its_resources(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    cluster, ingest, export = make_job("cluster"), make_job("ingest"), make_job("export")
    assert waits(any_runtime, "cpu")
    assert next_job(any_runtime, "cpu") == ingest.id
    assert next_job(any_runtime, "cpu") == export.id
    assert not waits(any_runtime, "cpu")
    assert next_job(any_runtime, "cpu") is None
    assert waits(any_runtime, "gpu")
    assert next_job(any_runtime, "gpu") == cluster.id


def test_a_worker_with_all_resources_claims_by_age(any_runtime: Runtime, make_job: MakeJob) -> None:
    made = [make_job(kind).id for kind in ("cluster", "ingest", "sweep")]
    assert [next_job(any_runtime, "cpu", "gpu") for _ in made] == made


def test_an_expired_job_needs_a_worker_with_its_resource(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job("predict")
    claim_job(any_runtime, job, lease=EXPIRED)
    assert next_job(any_runtime, "cpu") is None
    assert next_job(any_runtime, "gpu") == job.id


@pytest.mark.parametrize("takes", [("cpu",), ("cpu", "gpu")])
def test_a_claim_uses_an_index(runtime: Runtime, takes: tuple[str, ...]) -> None:
    """Ten thousand finished jobs must not make it slower."""
    with runtime.db.write() as session:
        query = jobs._claimable_with(Job, takes).compile(
            runtime.db.engine, compile_kwargs={"literal_binds": True}
        )
        plan = [row[3] for row in session.execute(text(f"EXPLAIN QUERY PLAN {query}"))]
    assert any("USING" in line and "INDEX ix_jobs_status" in line for line in plan)
    assert not any(line.startswith("SCAN") for line in plan)
