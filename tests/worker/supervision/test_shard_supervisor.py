"""Idle workers run shards of other workers' jobs, in real processes that are killed."""

import os
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sqlalchemy import select, update

from app.core.jobs.lifecycle import cancel
from app.core.jobs.shards import ShardSpec, offer_shards
from app.core.platform.tables import Job, Shard
from app.core.runtime import Runtime
from temi.neighbors.exact import exact_neighbors
from tests.conftest import MakeSettings
from tests.temi.neighbors.brute_force import random_features
from tests.waiting import LONG_SECONDS, join, wait_until
from tests.worker.conftest import Claimed
from tests.worker.supervision.test_job_supervisor import _children
from tests.worker.tiny import add_dataset, add_job
from worker.stages.artifacts import load_array, save_array, save_json
from worker.supervision.heartbeat import worker_state
from worker.supervision.job_supervisor import run_waiting_jobs
from worker.supervision.maintenance import notify_of_shard
from worker.supervision.metrics import metrics

FEATURES = random_features(3000, 64)
KEYS = [f"embeddings/test/part-{n}.npy" for n in range(3)]
PLAN = {
    "task": "mine",
    "features": "embeddings/test/features.npy",
    "k": 5,
    "threads": 1,
    "cells": None,
}
Offer = Callable[..., Job]


@pytest.fixture
def runtime(make_settings: MakeSettings) -> Iterator[Runtime]:
    """Clears the excluded jobs of this process."""
    made = Runtime(make_settings())
    yield made
    worker_state.excluded_jobs.clear()
    made.db.dispose()
    made.celery.close()


@pytest.fixture
def offer(runtime: Runtime, claimed: Claimed) -> Offer:
    """Offers three mining shards of a job that another worker holds."""

    def make(plan: dict[str, object] | None = None) -> Job:
        save_array(runtime.storage, "embeddings/test/features.npy", FEATURES)
        save_json(runtime.storage, "embeddings/test/plan.json", plan or PLAN)
        job = claimed(runtime, add_job(runtime, add_dataset(runtime, [])).id).job
        shards = [ShardSpec(key, 1000 * n, 1000) for n, key in enumerate(KEYS)]
        with runtime.db.write() as session:
            offer_shards(session, job, "mine", "embeddings/test/plan.json", shards, "cpu")
        return job

    return make


def shards(runtime: Runtime) -> list[Shard]:
    with runtime.db.read() as session:
        return list(session.scalars(select(Shard).order_by(Shard.number)))


def make_endless(runtime: Runtime) -> None:
    """Puts a pipe in place of the features: reading it never ends."""
    path = runtime.storage.path("embeddings/test/features.npy")
    path.unlink()
    os.mkfifo(path)


@pytest.fixture
def running_shards(runtime: Runtime, offer: Offer) -> Iterator[tuple[Job, threading.Event]]:
    """Runs a worker in a thread, whose shard process does not end by itself."""
    job = offer()
    make_endless(runtime)
    stopping = threading.Event()
    thread = threading.Thread(target=run_waiting_jobs, args=(runtime, stopping))
    thread.start()
    try:
        wait_until(lambda: _children() and shards(runtime)[0].fence == 1)
        yield job, stopping
    finally:
        stopping.set()
        join(thread)
        assert _children() == []


def test_one_process_runs_all_shards(runtime: Runtime, offer: Offer) -> None:
    job = offer()
    before = metrics.shards.labels("mine")._value.get()
    assert run_waiting_jobs(runtime, threading.Event()) == 0  # shards are not counted as jobs
    found = shards(runtime)
    assert [(s.done_at is not None, s.fence, s.crashes) for s in found] == [(True, 1, 0)] * 3
    ids = np.concatenate([load_array(runtime.storage, key) for key in KEYS])
    np.testing.assert_array_equal(ids, exact_neighbors(FEATURES, 5, memory_bytes=1 << 30))
    assert metrics.shards.labels("mine")._value.get() == before + 3
    assert worker_state.idle
    with runtime.db.read() as session:
        held = session.get_one(Job, job.id)
    assert (held.status, held.fence, held.worker) == ("running", 1, "test")


def test_shards_need_a_worker_with_their_resource(
    make_settings: MakeSettings, offer: Offer
) -> None:
    offer()
    picky = Runtime(make_settings(worker_takes=("gpu",)))
    assert run_waiting_jobs(picky, threading.Event()) == 0
    assert [shard.fence for shard in shards(picky)] == [0, 0, 0]
    picky.db.dispose()


def test_a_killed_process_counts_as_a_crash_and_excludes_the_job(
    runtime: Runtime, running_shards: tuple[Job, threading.Event]
) -> None:
    job, _ = running_shards
    for child in _children():
        child.kill()
    wait_until(lambda: shards(runtime)[0].crashes == 1)
    wait_until(lambda: worker_state.excluded_jobs == {job.id})
    assert [(s.fence, s.lease_until) for s in shards(runtime)] == [(1, 0.0), (0, 0.0), (0, 0.0)]


def test_a_stopping_worker_releases_its_shard_without_a_crash(
    runtime: Runtime, running_shards: tuple[Job, threading.Event]
) -> None:
    _, stopping = running_shards
    stopping.set()
    wait_until(lambda: shards(runtime)[0].lease_until == 0.0)
    assert shards(runtime)[0].crashes == 0
    assert worker_state.excluded_jobs == set()


def test_shards_of_a_cancelled_job_end(
    runtime: Runtime, running_shards: tuple[Job, threading.Event]
) -> None:
    job, _ = running_shards
    with runtime.db.write() as session:
        cancel(session, "default", job.id)
    wait_until(lambda: _children() == [])


def test_a_shard_claimed_by_another_worker_is_given_up(
    runtime: Runtime, running_shards: tuple[Job, threading.Event]
) -> None:
    with runtime.db.write() as session:
        session.execute(update(Shard).values(fence=9, lease_until=9e12, worker="other"))
    wait_until(lambda: _children() == [])
    assert [(s.fence, s.worker, s.crashes) for s in shards(runtime)] == [(9, "other", 0)] * 3


def test_a_failed_shard_excludes_the_job(runtime: Runtime, offer: Offer) -> None:
    job = offer(PLAN | {"features": "embeddings/test/gone.npy"})
    assert run_waiting_jobs(runtime, threading.Event()) == 0
    first, *others = shards(runtime)
    assert (first.crashes, first.lease_until, first.done_at) == (0, 0.0, None)
    assert [shard.fence for shard in others] == [0, 0]
    assert worker_state.excluded_jobs == {job.id}
    assert not notify_of_shard(runtime)


def test_an_unavailable_storage_does_not_exclude_the_job(
    make_settings: MakeSettings, runtime: Runtime, offer: Offer
) -> None:
    offer()
    bucket = {"storage_url": "s3://none", "s3_endpoint": "http://127.0.0.1:9"}
    cut_off = Runtime(make_settings(**bucket, s3_access_key="a", s3_secret_key="b"))
    stopping = threading.Event()
    thread = threading.Thread(target=run_waiting_jobs, args=(cut_off, stopping))
    thread.start()
    wait_until(lambda: max(shard.fence for shard in shards(runtime)) >= 2)
    stopping.set()
    join(thread)
    assert [(shard.crashes, shard.done_at) for shard in shards(runtime)] == [(0, None)] * 3
    assert worker_state.excluded_jobs == set()
    cut_off.db.dispose()


def test_only_idle_workers_notify_of_shards(runtime: Runtime, offer: Offer) -> None:
    assert not notify_of_shard(runtime)
    offer()
    worker_state.start_work("job_1")
    assert not notify_of_shard(runtime)
    worker_state.end_work()
    assert notify_of_shard(runtime)
    with runtime.celery.connection_for_read() as connection:
        queue = connection.SimpleQueue("temi.cpu")
        queue.get(timeout=LONG_SECONDS).ack()
        queue.close()
