"""An embedding by several workers has the same bits as by one worker."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sqlalchemy import select, update

from app.core.jobs.shards import ShardClaim, claim_any_shard, release_shard, renew_shard
from app.core.platform.errors import Conflict, WorkerCrashed
from app.core.platform.tables import Dataset, Shard
from app.core.runtime import Runtime
from temi.backbones.backends import TorchBackend
from tests.conftest import MakeSettings
from tests.worker.conftest import Claimed
from tests.worker.job_steps import log_of
from tests.worker.tiny import CountingBackbone, add_dataset, add_job, picture, tiny_backbone
from worker.context import ShardClaimChanged
from worker.stages import base as stages
from worker.stages import sharded_stage as sharding
from worker.stages.embedding import EmbeddingFiles, embed_dataset
from worker.supervision import heartbeat as presence
from worker.supervision.shard_process import run_shards

PICTURES = [picture(n) for n in range(23)]
Files = EmbeddingFiles


@pytest.fixture
def shared(make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A runtime with shards of three images: eight of them."""
    runtime = Runtime(make_settings(embed_shard=3, torch_threads=1))
    monkeypatch.setattr(stages, "open_extractor", lambda *_args: tiny_backbone())
    yield runtime
    runtime.db.dispose()
    runtime.celery.close()


def take(runtime: Runtime, worker: str, lease: float = 30.0) -> Shard | None:
    with runtime.db.write() as session:
        return claim_any_shard(session, ["gpu"], worker=worker, lease_seconds=lease, max_crashes=3)


def run_after_offer(monkeypatch: pytest.MonkeyPatch, run: Callable[[], None]) -> None:
    """Calls `run` as soon as the job's worker has offered its shards."""
    offer = sharding.ShardedStage._offer

    def offer_and_wait(stage: sharding.ShardedStage) -> None:
        offer(stage)
        run()

    monkeypatch.setattr(sharding.ShardedStage, "_offer", offer_and_wait)


def embed(runtime: Runtime, claimed: Claimed, dataset_id: str) -> tuple[Files, CountingBackbone]:
    backbone = tiny_backbone()
    context = claimed(runtime, add_job(runtime, dataset_id, backbone="tiny").id)
    files = EmbeddingFiles.of(context, backbone)
    embed_dataset(context, backbone, files)
    return files, backbone


def test_shards_of_other_workers_have_the_same_bits(
    shared: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, counting = embed(shared, claimed, add_dataset(shared, PICTURES))
    assert counting.images == 23
    expected = alone.features().copy()
    shared.storage.delete_folder(alone.folder)
    held: list[object] = []

    def run() -> None:
        one, other = take(shared, "one"), take(shared, "other")
        assert one is not None
        assert other is not None
        run_shards(shared, one.id, "one", held.append)
        with shared.db.write() as session:
            release_shard(session, ShardClaim.of(other), crashed=False)

    run_after_offer(monkeypatch, run)
    files, counting = embed(shared, claimed, add_dataset(shared, PICTURES))

    assert counting.images == 3
    assert len(held) == 7
    np.testing.assert_array_equal(files.features(), expected)
    names = [stored.key.rsplit("/", 1)[1] for stored in shared.storage.list(files.folder)]
    assert sorted(names) == ["features.npy", "hashes.npy"]
    with shared.db.read() as session:
        assert session.scalars(select(Shard)).all() == []


def test_the_log_counts_the_shards_of_each_worker(
    shared: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> None:
        shard = take(shared, "other")
        assert shard is not None
        with shared.db.write() as session:  # so that it can claim only one shard
            session.execute(update(Shard).where(Shard.id != shard.id).values(lease_until=9e12))
        run_shards(shared, shard.id, "other", lambda _: None)
        with shared.db.write() as session:
            session.execute(update(Shard).values(lease_until=0.0))

    run_after_offer(monkeypatch, run)
    context = claimed(shared, add_job(shared, add_dataset(shared, PICTURES), backbone="tiny").id)
    embed_dataset(context, tiny_backbone(), EmbeddingFiles.of(context, tiny_backbone()))
    assert "Shards of the stage embed: 1 by other, 7 by test." in log_of(shared, context.job)


def test_the_shard_of_a_dead_worker_is_claimed_again(
    make_settings: MakeSettings, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(make_settings(embed_shard=3, torch_threads=1))
    taken: list[Shard | None] = []
    run_after_offer(monkeypatch, lambda: taken.append(take(runtime, "doomed", lease=1.5)))
    files, counting = embed(runtime, claimed, add_dataset(runtime, PICTURES))
    (dead,) = taken
    assert dead is not None
    assert counting.images == 23
    assert files.features().shape[0] == 23
    with runtime.db.write() as session:
        assert not renew_shard(session, ShardClaim.of(dead), 30.0)
    runtime.db.dispose()


def test_a_shard_that_kills_every_worker_fails_the_job(
    shared: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die_of_the_first() -> None:
        with shared.db.write() as session:
            session.scalars(select(Shard)).all()[0].crashes = 3

    run_after_offer(monkeypatch, die_of_the_first)
    with pytest.raises(WorkerCrashed):
        embed(shared, claimed, add_dataset(shared, PICTURES))


def other_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "open_extractor", lambda *_args: tiny_backbone(seed=1))


def other_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = tiny_backbone()
    backbone._backend = TorchBackend(backbone._embed_by_torch, backbone.device)
    monkeypatch.setattr(stages, "open_extractor", lambda *_args: backbone)


@pytest.mark.parametrize(
    ("change", "reason"),
    [(other_backbone, "other backbone weights"), (other_backend, "on cpu with torch")],
)
def test_a_worker_with_other_features_refuses_the_shard(
    shared: Runtime,
    claimed: Claimed,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch], None],
    reason: str,
) -> None:
    errors: list[Exception] = []

    def run() -> None:
        change(monkeypatch)
        errors.append(_refused_help(shared))

    run_after_offer(monkeypatch, run)
    files, counting = embed(shared, claimed, add_dataset(shared, PICTURES))
    assert reason in str(errors[0])
    assert counting.images == 23
    assert files.done


def test_a_worker_without_bfloat16_refuses_the_shard(
    shared: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "_has_bfloat16", lambda _settings: False)
    errors: list[Exception] = []
    run_after_offer(monkeypatch, lambda: errors.append(_refused_help(shared)))
    dataset_id = add_dataset(shared, PICTURES)
    job = add_job(shared, dataset_id, backbone="tiny", precision="bfloat16")
    context = claimed(shared, job.id)
    embed_dataset(context, tiny_backbone(), EmbeddingFiles.of(context, tiny_backbone()))
    assert "needs bfloat16" in str(errors[0])


def _refused_help(runtime: Runtime) -> Exception:
    shard = take(runtime, "other")
    assert shard is not None
    with pytest.raises(Conflict) as refused:
        run_shards(runtime, shard.id, "other", lambda _: None)
    with runtime.db.write() as session:
        session.execute(update(Shard).values(lease_until=0.0))
    return refused.value


def test_a_waiting_job_comes_before_more_shards(
    shared: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id = add_dataset(shared, PICTURES)
    held: list[object] = []

    def run() -> None:
        shard = take(shared, "other")
        assert shard is not None
        add_job(shared, dataset_id, backbone="tiny")
        run_shards(shared, shard.id, "other", held.append)

    run_after_offer(monkeypatch, run)
    _, counting = embed(shared, claimed, dataset_id)
    assert held == [ShardClaimChanged(None)]
    assert counting.images == 20


def test_shards_use_the_features_of_the_jobs_tenant(
    shared: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = (add_dataset(shared, PICTURES) for _ in range(2))
    with shared.db.write() as session:
        session.get_one(Dataset, theirs).tenant = "another"
    mine, _ = embed(shared, claimed, ours)
    forwarded: list[str] = []

    def run() -> None:
        shard = take(shared, "other")
        assert shard is not None
        forwarded.append(shard.key)
        run_shards(shared, shard.id, "other", lambda _: None)

    run_after_offer(monkeypatch, run)
    files, _ = embed(shared, claimed, theirs)
    assert files.folder != mine.folder
    assert all(key.startswith(files.folder) for key in forwarded)


def test_shards_of_an_earlier_attempt_are_reused(
    shared: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id = add_dataset(shared, PICTURES)
    job = add_job(shared, dataset_id, backbone="tiny")
    made: list[str] = []
    run_shard = sharding.run_shard

    def die_after_two(*given: object) -> None:
        if len(made) == 2:
            raise KeyboardInterrupt
        run_shard(*given)  # type: ignore[arg-type]
        made.append("one")

    context, backbone = claimed(shared, job.id), tiny_backbone()
    files = EmbeddingFiles.of(context, backbone)
    monkeypatch.setattr(sharding, "run_shard", die_after_two)
    with pytest.raises(KeyboardInterrupt):
        embed_dataset(context, backbone, files)
    monkeypatch.setattr(sharding, "run_shard", run_shard)
    with shared.db.write() as session:  # expires the lease of its shard
        session.execute(update(Shard).values(lease_until=0.0))
    backbone = tiny_backbone()
    embed_dataset(context, backbone, files)
    assert backbone.images == 17
