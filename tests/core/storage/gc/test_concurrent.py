"""The collector and a job want the same folder in the same moment."""

import time
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import update

from app.core.platform.tables import Dataset
from app.core.runtime import Runtime
from app.core.storage.gc.collector import parts
from tests.core.storage.gc.tomorrow import DAYS
from tests.core.storage.gc.world import World

ROUNDS = 25


def test_features_that_a_job_has_found_are_not_taken_from_it(any_runtime: Runtime) -> None:
    """They lie there without an owner, old enough to go, and the job becomes their owner."""
    world = World(any_runtime, datasets=1)
    kind, folder = next(part for part in parts() if part[1] == "embeddings")

    def take_all() -> None:
        list(any_runtime.collector.collect_part(kind, folder, now=time.time() + DAYS))

    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            with any_runtime.db.write() as session:
                session.execute(update(Dataset).values(fingerprint=f"{number:064d}"))
            world.start_job(0)
            job = world.job(0, "queued")
            assert job is not None
            key = f"{world.folder(job)}/features.npy"
            any_runtime.storage.write(key, b"of an earlier dataset")
            both = [pool.submit(take_all), pool.submit(world.embed, 0)]
            for future in both:
                future.result()
            assert any_runtime.storage.exists(key)
            world.end_all_jobs()
