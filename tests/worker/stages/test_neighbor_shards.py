"""Neighbors that several workers have found are those that one finds."""

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
from worker.stages.neighbors import NeighborFiles, mine
from worker.supervision.shard_process import help_with

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
        return claim_any_shard(session, ["cpu"], worker="other", lease=30.0, max_crashes=3)


def lend_a_hand(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A helper that does all it can before the job's own worker begins; returns how many."""
    offer = sharding.ShardedStage._offer
    done: list[object] = []

    def offer_and_wait(cut: sharding.ShardedStage) -> None:
        offer(cut)
        shard = take(runtime)
        assert shard is not None
        help_with(runtime, shard.id, "other", done.append)

    monkeypatch.setattr(sharding.ShardedStage, "_offer", offer_and_wait)
    return lambda: sum(isinstance(message, ShardClaimChanged) for message in done)


def test_with_and_without_help_by_cells(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = clustered_features(4000)
    files = files_of(shared, features)
    mine(context, features, files)
    alone, summary = files.ids().copy(), files.summary()
    assert summary["method"] == "approximate"
    shared.storage.delete_folder("embeddings/test")

    files, helped = files_of(shared, features), lend_a_hand(shared, monkeypatch)
    mine(context, features, files)
    assert helped() == 6
    np.testing.assert_array_equal(files.ids(), alone)
    assert files.summary() == summary
    whole = mine_neighbors(features, K, method="approximate")
    np.testing.assert_array_equal(alone, whole.ids)
    left = {f.key.rsplit("/", 1)[1] for f in shared.storage.list("embeddings/test")}
    assert left == {"features.npy", "neighbors-10-approximate.npy", "neighbors-10.json"}


def test_exactly_where_cells_are_of_no_use(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = random_features(2000, 128)
    helped = lend_a_hand(shared, monkeypatch)
    files = files_of(shared, features)
    mine(context, features, files)
    assert helped() == 3
    assert files.summary()["method"] == "exact"
    np.testing.assert_array_equal(files.ids(), mine_neighbors(features, K, method="exact").ids)


def test_a_missed_recall_is_another_round(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded, "choose_n_probes", lambda *_: 1)
    helped = lend_a_hand(shared, monkeypatch)
    features = clustered_features(4000)
    files = files_of(shared, features)
    mine(context, features, files)
    assert files.summary()["recall"] >= 0.98
    assert files.summary()["n_probes"] > 1
    assert helped() > 6
    assert "Too many neighbors were missed; more cells are looked at." in log_of(
        shared, context.job
    )


def test_an_attempt_goes_on_with_the_cells_of_the_one_before(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = clustered_features(4000)
    files = files_of(shared, features)
    done: list[str] = []
    do_shard = sharding.do_shard

    def die_at_the_third(runtime: Runtime, shard: Shard, *given: Any) -> None:
        done.append(shard.key)
        if len(done) == 3:
            raise KeyboardInterrupt
        do_shard(runtime, shard, *given)

    monkeypatch.setattr(sharding, "do_shard", die_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        mine(context, features, files)
    with shared.db.write() as session:  # the lease of the third has run out
        session.execute(update(Shard).values(lease_until=0.0))
    mine(context, features, files)
    assert len(done) == 3 + 4
    assert len(set(done)) == 6
    expected = mine_neighbors(features, K, method="approximate").ids
    np.testing.assert_array_equal(files.ids(), expected)


def test_a_small_collection_is_not_cut(
    shared: Runtime, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sharding.ShardedStage, "run")
    features = random_features(700)
    files = files_of(shared, features)
    mine(context, features, files)
    assert files.done
