"""The collector and a job use the same folder at the same time."""

import time
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import update

from app.core.platform.tables import Dataset
from app.core.runtime import Runtime
from app.core.storage.deletion.collector import parts
from tests.core.storage.deletion.collecting import DAYS
from tests.core.storage.deletion.small_service import SmallService

ROUNDS = 25


def test_features_that_a_job_reuses_are_not_collected(any_runtime: Runtime) -> None:
    """They are old and have no owner until the job becomes their owner."""
    service = SmallService(any_runtime, datasets=1)
    kind, folder = next(part for part in parts() if part[1] == "embeddings")

    def collect_all() -> None:
        list(any_runtime.collector.collect_part(kind, folder, now=time.time() + DAYS))

    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            with any_runtime.db.write() as session:
                session.execute(update(Dataset).values(fingerprint=f"{number:064d}"))
            service.start_job(0)
            job = service.job(0, "queued")
            assert job is not None
            key = f"{service.folder(job)}/features.npy"
            any_runtime.storage.write(key, b"of an earlier dataset")
            both = [pool.submit(collect_all), pool.submit(service.embed, 0)]
            for future in both:
                future.result()
            assert any_runtime.storage.exists(key)
            service.end_all_jobs()
