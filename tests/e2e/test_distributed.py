"""The same service on PostgreSQL and Redis, chosen by settings alone."""

from pathlib import Path
from typing import Any

import redis

from tests.freezing import suspend_between_writes
from tests.waiting import wait_until


def test_postgresql_and_redis_by_settings_only(
    start_service: Any, postgres_url: str, redis_url: str, shapes_zip: Path
) -> None:
    settings = {"TEMI_DATABASE_URL": postgres_url, "TEMI_BROKER_URL": redis_url}
    with start_service(**settings) as service, service.client() as client:
        ingest = client.wait(client.upload_dataset(shapes_zip, name="shapes").id)
        job = client.wait(client.cluster(ingest.dataset_id, 3, steps=5).id)
        assigned = list(client.assignments(job.result["clustering_id"]))
        assert len(assigned) == 90


def test_a_broker_that_loses_its_data_loses_no_job(
    start_service: Any, redis_url: str, shapes_zip: Path
) -> None:
    with start_service(TEMI_BROKER_URL=redis_url) as service, service.client() as client:
        worker = service.worker()
        # so that the message is still in the broker when its data is lost
        suspend_between_writes([worker], service.database)
        try:
            # a waiting worker receives the first message, the second stays
            jobs = [client.upload_dataset(shapes_zip, name=name) for name in ("one", "two")]
            with redis.Redis.from_url(redis_url) as broker:
                # messages are sent from a thread
                wait_until(lambda: broker.llen("temi.cpu") >= 1, "a message waits")
                broker.flushall()
        finally:
            worker.resume()
        assert [client.wait(job.id).status for job in jobs] == ["succeeded"] * 2
