"""With a database that does not respond, /readyz and /metrics still do."""

import asyncio

import httpx
from fastapi import FastAPI
from sqlalchemy import QueuePool

from app.core.platform.db import Database
from app.main import create_app
from tests.conftest import MakeSettings
from tests.servers import frozen
from tests.waiting import LONG_SECONDS, wait_until

_MORE_THAN_THE_POOL_HAS_THREADS = 45


def test_readyz_and_metrics_respond(make_settings: MakeSettings, postgres_url: str) -> None:
    app = create_app(make_settings(database_url=postgres_url))
    try:
        asyncio.run(_ask_while_frozen(app, postgres_url))
    finally:
        _close(app.state.runtime.db)


def _close(db: Database) -> None:
    """Waits until the threads of the probes have ended, too."""
    pool = db.engine.pool
    assert isinstance(pool, QueuePool)
    wait_until(lambda: not pool.checkedout(), "all connections are back")
    db.dispose()


async def _ask_while_frozen(app: FastAPI, postgres_url: str) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", timeout=LONG_SECONDS
    ) as api:
        assert (await api.get("/v1/datasets")).status_code == 200
        with frozen(postgres_url):
            hanging = [
                asyncio.create_task(api.get("/v1/datasets"))
                for _ in range(_MORE_THAN_THE_POOL_HAS_THREADS)
            ]
            await asyncio.sleep(0.5)
            ready, figures = await asyncio.gather(api.get("/readyz"), api.get("/metrics"))
            assert not any(task.done() for task in hanging)
            assert (await api.get("/livez")).status_code == 200
        assert ready.status_code == 503
        assert ready.json()["checks"]["database"]["status"] == "failed"
        assert "temi_database_up 0.0" in figures.text
        assert "temi_storage_free_bytes" in figures.text
        assert "temi_jobs_queued" not in figures.text
        answers = await asyncio.gather(*hanging)
        assert {answer.status_code for answer in answers} <= {200, 503}
