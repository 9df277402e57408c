"""One job by four workers, one of them killed, gives the bits of one worker."""

import hashlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import select, text

from app.core.platform.db import Database
from app.core.platform.tables import Job, Shard
from tests.e2e.conftest import SERVICE_VARIABLES
from tests.leases import expire_shards_of
from tests.waiting import end, wait_for_ends, wait_until

_HELD_OPEN = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND state = 'idle in transaction' AND now() - xact_start > interval '0.2 s'"
)


@contextmanager
def another_worker(data_dir: Path, log: Path, **settings: str) -> Iterator[psutil.Process]:
    """A worker in addition to that of the service."""
    environment = {**os.environ, **settings, "TEMI_DATA_DIR": str(data_dir)}
    with log.open("wb") as out:
        process = psutil.Popen(
            [sys.executable, "-m", "app.cli.main", "worker"],
            env=environment,
            stdout=out,
            stderr=out,
        )
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            end(process)


def name_of(process: psutil.Process) -> str:
    return f"{os.uname().nodename}:{process.pid}"


def child_of(process: psutil.Process) -> psutil.Process:
    """Returns the job or shard process that it supervises."""
    (child,) = (c for c in process.children() if "spawn_main" in " ".join(c.cmdline()))
    return child


def workers_with_finished_shards(db: Database) -> set[str | None]:
    with db.read() as session:
        return set(session.scalars(select(Shard.worker).where(Shard.done_at.is_not(None))))


def holder_of(db: Database, job_id: str) -> str | None:
    """Returns the worker that holds the job."""
    with db.read() as session:
        return session.get_one(Job, job_id).worker


def freeze(child: psutil.Process, db: Database) -> bool:
    """Suspends the worker; returns False if it has locked a row, which would block the others."""
    child.suspend()
    time.sleep(0.3)
    with db.read() as session:
        if session.scalar(_HELD_OPEN):
            child.resume()
            return False
    return True


def freeze_workers_with_finished_shards(
    workers: list[psutil.Process], frozen: dict[int, psutil.Process], db: Database
) -> bool:
    """Suspends workers that have run a shard, so that all get one; returns True when all have."""
    names = workers_with_finished_shards(db)
    for worker in workers:
        if worker.pid not in frozen and name_of(worker) in names:
            child = child_of(worker)
            if freeze(child, db):
                frozen[worker.pid] = child
    return len(frozen) == len(workers)


def features_hash(data_dir: Path) -> str | None:
    """Returns None until the file exists; it appears complete."""
    for file in (data_dir / "blobs" / "embeddings").glob("*/features.npy"):
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return None


def test_four_workers_share_a_job_and_one_is_killed(
    start_service: Any, tmp_path: Path, postgres_url: str, redis_url: str, shapes_zip: Path
) -> None:
    settings = {
        **SERVICE_VARIABLES,
        "TEMI_DATABASE_URL": postgres_url,
        "TEMI_BROKER_URL": redis_url,
        "TEMI_EMBED_SHARD": "1",
        "TEMI_TORCH_THREADS": "1",
    }
    data_dir, db = tmp_path / "data", Database(postgres_url)
    with start_service(**settings) as service, service.client() as client, ExitStack() as stack:
        dataset = client.wait(client.upload_dataset(shapes_zip, name="shapes").id).dataset_id
        job = client.cluster(dataset, 3)
        alone = wait_until(lambda: features_hash(data_dir))
        client.cancel(job.id)  # the rest is not tested here
        wait_until(lambda: client.job(job.id).finished)
        shutil.rmtree(data_dir / "blobs" / "embeddings")

        others = [
            stack.enter_context(another_worker(data_dir, tmp_path / f"{n}.log", **settings))
            for n in range(3)
        ]
        wait_until(lambda: len(list(client.workers())) == 4)
        shared = client.cluster(dataset, 3, steps=1)
        workers, frozen = [service.worker(), *others], dict[int, psutil.Process]()
        wait_until(lambda: freeze_workers_with_finished_shards(workers, frozen, db))
        wait_until(lambda: {found.job_id for found in client.workers()} == {shared.id})
        owner = holder_of(db, shared.id)
        victim = next(other for other in others if name_of(other) != owner)
        lost = [victim, frozen.pop(victim.pid)]
        victim.kill()  # its process dies with it, and its shard expires
        wait_for_ends(lost)
        expire_shards_of(db, name_of(victim))
        for child in frozen.values():
            child.resume()

        assert client.wait(shared.id).status == "succeeded"
        assert features_hash(data_dir) == alone
        (line,) = (x.message for x in client.logs(shared.id) if "Shards of the stage" in x.message)
        assert all(name_of(process) in line for process in workers), line
        living = [other for other in others if other is not victim]
        for other in living:
            other.send_signal(signal.SIGTERM)
        gone = {name_of(other) for other in living}
        wait_until(lambda: not gone & {found.name for found in client.workers()})
    db.dispose()
