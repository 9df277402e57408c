"""Shards of a job, on both databases: one worker at a time, and no write without the fence."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.jobs import shards
from app.core.jobs.shards import ShardClaim, ShardCounts, ShardSpec
from app.core.platform.tables import Job, Shard
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.job_steps import EXPIRED, cancel_job, claim_job, end_job

PIECES = [ShardSpec(f"e/shard-{n}.npy", 10 * n, 10) for n in range(4)]
CRASHES = 3


@pytest.fixture
def job(any_runtime: Runtime, make_job: MakeJob) -> Job:
    return offered(any_runtime, make_job())


def offered(runtime: Runtime, job: Job, needs: str = "gpu") -> Job:
    claimed = claim_job(runtime, job)
    assert claimed is not None
    with runtime.db.write() as session:
        shards.offer_shards(session, claimed, "embed", "e/plan.json", PIECES, needs)
    return claimed


def take(runtime: Runtime, job: Job, lease: float = 60.0, worker: str = "w") -> Shard | None:
    with runtime.db.write() as session:
        return shards.claim_shard(
            session, job.id, "embed", worker=worker, lease_seconds=lease, max_crashes=CRASHES
        )


def take_any(runtime: Runtime, *takes: str, excluded: tuple[str, ...] = ()) -> Shard | None:
    with runtime.db.write() as session:
        return shards.claim_any_shard(
            session,
            takes,
            worker="h",
            lease_seconds=60.0,
            max_crashes=CRASHES,
            excluded_jobs=excluded,
        )


def finish(runtime: Runtime, shard: Shard) -> bool:
    with runtime.db.write() as session:
        return shards.finish_shard(session, ShardClaim.of(shard))


def keep(runtime: Runtime, shard: Shard) -> bool:
    with runtime.db.write() as session:
        return shards.renew_shard(session, ShardClaim.of(shard), 60.0)


def state(runtime: Runtime, job: Job) -> ShardCounts:
    with runtime.db.read() as session:
        return shards.count_shards(session, job.id, "embed", CRASHES)


def test_each_shard_is_claimed_by_one_of_many_workers(any_runtime: Runtime, job: Job) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda n: take(any_runtime, job, worker=f"w{n}"), range(8)))
    found = [shard for shard in taken if shard]
    # Of eight concurrent claims, some may find all open shards locked, and try again.
    while more := take(any_runtime, job):
        found.append(more)
    assert sorted(shard.number for shard in found) == [0, 1, 2, 3]
    assert {shard.fence for shard in found} == {1}


def test_progress_counts_the_shards_of_all_workers(any_runtime: Runtime, job: Job) -> None:
    mine, theirs = take(any_runtime, job, worker="a"), take(any_runtime, job, worker="b")
    assert mine is not None
    assert theirs is not None
    assert state(any_runtime, job) == ShardCounts(open=4, rows_done=0, failed=0)
    assert finish(any_runtime, mine)
    assert finish(any_runtime, theirs)
    assert state(any_runtime, job) == ShardCounts(open=2, rows_done=20, failed=0)
    with any_runtime.db.read() as session:
        assert shards.shards_by_worker(session, job.id, "embed") == {"a": 1, "b": 1}


def test_an_expired_shard_is_claimed_again(any_runtime: Runtime, job: Job) -> None:
    first = take(any_runtime, job, lease=EXPIRED)
    assert first is not None
    others = [take(any_runtime, job) for _ in range(3)]
    again = take(any_runtime, job)
    assert again is not None
    assert [shard.number for shard in others if shard] == [1, 2, 3]  # these have no crashes
    assert (again.number, again.fence, again.crashes) == (0, 2, 1)
    assert not finish(any_runtime, first)  # its lease has expired
    assert not keep(any_runtime, first)
    assert state(any_runtime, job).rows_done == 0
    assert finish(any_runtime, again)


def test_a_shard_with_too_many_crashes_has_failed(any_runtime: Runtime, job: Job) -> None:
    for _ in range(3):
        taken = take(any_runtime, job)
        assert taken is not None
        assert finish(any_runtime, taken)
    for _ in range(CRASHES):
        assert state(any_runtime, job).failed == 0
        assert take(any_runtime, job, lease=EXPIRED) is not None
    assert take(any_runtime, job) is None
    assert state(any_runtime, job) == ShardCounts(open=1, rows_done=30, failed=1)


def test_a_release_counts_only_crashes(any_runtime: Runtime, job: Job) -> None:
    for crashed in (False, True):
        shard = take(any_runtime, job)
        assert shard is not None
        with any_runtime.db.write() as session:
            assert shards.release_shard(session, ShardClaim.of(shard), crashed=crashed)
            assert not shards.release_shard(session, ShardClaim(shard.id, 99), crashed=True)
    with any_runtime.db.read() as session:
        stored = session.get_one(Shard, f"{job.id}/embed/0")
    assert (stored.fence, stored.crashes, stored.lease_until) == (2, 1, 0.0)


def test_cancelling_a_job_ends_its_shards(any_runtime: Runtime, job: Job) -> None:
    held = take_any(any_runtime, "gpu")
    assert held is not None
    assert keep(any_runtime, held)
    cancel_job(any_runtime, job)
    assert not keep(any_runtime, held)
    assert take_any(any_runtime, "gpu") is None
    end_job(any_runtime, job, job.fence, "cancelled")
    with any_runtime.db.read() as session:
        assert session.get(Shard, held.id) is None


def test_shards_of_a_queued_job_are_claimed(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job, lease=EXPIRED)
    with any_runtime.db.write() as session:
        shards.offer_shards(session, job, "embed", "e/plan.json", PIECES, "gpu")
    assert take_any(any_runtime, "gpu") is not None


def test_shards_are_claimed_by_resource_and_priority(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    slow, urgent, other = make_job(), make_job(), make_job()
    with any_runtime.db.write() as session:
        session.get_one(Job, urgent.id).priority = 5
    for job, needs in ((slow, "gpu"), (urgent, "gpu"), (other, "cpu")):
        offered(any_runtime, job, needs)
    with any_runtime.db.read() as session:
        seen = shards.find_claimable_shard(session, ["gpu"], max_crashes=CRASHES)
    taken = [
        take_any(any_runtime, "gpu"),
        take_any(any_runtime, "gpu", excluded=(urgent.id,)),
        take_any(any_runtime, "cpu"),
        take_any(any_runtime, "gpu", "cpu"),
    ]
    found = [shard.job_id for shard in taken if shard]
    assert found == [urgent.id, slow.id, other.id, urgent.id]
    assert seen is not None
    assert (seen.job_id, seen.fence) == (urgent.id, 0)
    assert take_any(any_runtime, "gpu", excluded=(urgent.id, slow.id)) is None


def test_the_same_plan_keeps_the_shards_and_another_replaces_them(
    any_runtime: Runtime, job: Job
) -> None:
    done = take(any_runtime, job)
    assert done is not None
    finish(any_runtime, done)
    with any_runtime.db.write() as session:
        shards.offer_shards(session, job, "embed", "e/plan.json", PIECES, "gpu")
    assert state(any_runtime, job).open == 3
    with any_runtime.db.write() as session:
        shards.offer_shards(session, job, "embed", "e/plan.json", PIECES[1:], "gpu")
    assert state(any_runtime, job) == ShardCounts(open=3, rows_done=0, failed=0)


def test_shards_with_a_file_are_done(any_runtime: Runtime, job: Job) -> None:
    done = take(any_runtime, job)
    assert done is not None
    finish(any_runtime, done)
    with any_runtime.db.write() as session:
        shards.mark_done(session, job.id, "embed", {2, 3})
    assert state(any_runtime, job) == ShardCounts(open=2, rows_done=20, failed=0)
    reopened = take(any_runtime, job)
    assert reopened is not None
    assert reopened.number == 0
