"""Neighbors found by several workers are those that one worker finds."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

from app.core.jobs.shards import claim_any_shard
from app.core.platform.tables import Shard
from app.core.runtime import Runtime
from temi.neighbors import sharded
from temi.neighbors.search import mine_neighbors
from tests.conftest import MakeSettings
from tests.temi.neighbors.brute_force import clustered_features, random_features
from tests.worker.conftest import Claimed
from tests.worker.job_steps import log_of
from tests.worker.tiny import add_dataset, add_job
from worker.context import JobContext, ShardClaimChanged
from worker.stages import sharded_stage as sharding
from worker.stages.artifacts import save_array
from worker.stages.neighbors import NeighborFiles, mine_features
from worker.supervision.shard_process import run_shards

K = 10
Features = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


@pytest.fixture
def shared(make_settings: MakeSettings) -> Iterator[Runtime]:
    runtime = Runtime(make_settings(mine_shard=700))
    yield runtime
    runtime.db.dispose()
    runtime.celery.close()


@pytest.fixture
def context(shared: Runtime, claimed: Claimed) -> JobContext:
    return claimed(shared, add_job(shared, add_dataset(shared, [])).id)


def files_of(runtime: Runtime, features: Features) -> NeighborFiles:
    key = "embeddings/test/features.npy"
    save_array(runtime.storage, key, features)
    return NeighborFiles(runtime.storage, "embeddings/test/neighbors", K, key)


def take(runtime: Runtime) -> Shard | None:
    with runtime.db.write() as session:
        return claim_any_shard(session, ["cpu"], worker="other", lease_seconds=30.0, max_crashes=3)


def run_shards_first(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Another worker runs all shards before the job's worker begins; returns a counter."""
    offer = sharding.ShardedStage._offer
    done: list[object] = []

    def offer_and_wait(stage: sharding.ShardedStage) -> None:
        offer(stage)
        shard = take(runtime)
        assert shard is not None
        run_shards(runtime, shard.id, "other", done.append)

    monkeypatch.setattr(sharding.ShardedStage, "_offer", offer_and_wait)
    return lambda: sum(isinstance(message, ShardClaimChanged) for message in done)


def test_approximate_search_with_and_without_other_workers(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = clustered_features(4000)
    files = files_of(shared, features)
    mine_features(context, features, files)
    alone, summary = files.ids().copy(), files.summary()
    assert summary["method"] == "approximate"
    shared.storage.delete_folder("embeddings/test")

    files, shards_done = files_of(shared, features), run_shards_first(shared, monkeypatch)
    mine_features(context, features, files)
    assert shards_done() == 6
    np.testing.assert_array_equal(files.ids(), alone)
    assert files.summary() == summary
    whole = mine_neighbors(features, K, method="approximate")
    np.testing.assert_array_equal(alone, whole.ids)
    left = {f.key.rsplit("/", 1)[1] for f in shared.storage.list("embeddings/test")}
    assert left == {"features.npy", "neighbors-10-approximate.npy", "neighbors-10.json"}


def test_exact_search_with_other_workers(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = random_features(2000, 128)
    shards_done = run_shards_first(shared, monkeypatch)
    files = files_of(shared, features)
    mine_features(context, features, files)
    assert shards_done() == 3
    assert files.summary()["method"] == "exact"
    np.testing.assert_array_equal(files.ids(), mine_neighbors(features, K, method="exact").ids)


def test_a_low_recall_repeats_the_search(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded, "choose_n_probes", lambda *_: 1)
    shards_done = run_shards_first(shared, monkeypatch)
    features = clustered_features(4000)
    files = files_of(shared, features)
    mine_features(context, features, files)
    assert files.summary()["recall"] >= 0.98
    assert files.summary()["n_probes"] > 1
    assert shards_done() > 6
    assert "Too many neighbors were missed; more cells will be searched." in log_of(
        shared, context.job
    )


def test_the_next_attempt_reuses_the_cells(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = clustered_features(4000)
    files = files_of(shared, features)
    done: list[str] = []
    run_shard = sharding.run_shard

    def die_at_the_third(runtime: Runtime, shard: Shard, *given: Any) -> None:
        done.append(shard.key)
        if len(done) == 3:
            raise KeyboardInterrupt
        run_shard(runtime, shard, *given)

    monkeypatch.setattr(sharding, "run_shard", die_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        mine_features(context, features, files)
    with shared.db.write() as session:  # expires the lease of the third
        session.execute(update(Shard).values(lease_until=0.0))
    mine_features(context, features, files)
    assert len(done) == 3 + 4
    assert len(set(done)) == 6
    expected = mine_neighbors(features, K, method="approximate").ids
    np.testing.assert_array_equal(files.ids(), expected)


def test_a_small_dataset_is_not_sharded(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sharding.ShardedStage, "run")
    features = random_features(700)
    files = files_of(shared, features)
    mine_features(context, features, files)
    assert files.done
