"""The metrics of a worker, during and after a job."""

from pathlib import Path
from typing import Any

import httpx

from tests.servers import free_port
from tests.waiting import LONG_SECONDS, wait_until


def test_metrics_of_a_worker(start_service: Any, shapes_zip: Path) -> None:
    port = free_port()
    with start_service(TEMI_METRICS_PORT=str(port)) as service, service.client() as client:
        client.wait(client.upload_dataset(shapes_zip, name="shapes").id)
        text = _metrics(port)
        assert 'temi_worker_items_total{kind="ingest",stage="ingest"} 90.0' in text
        assert 'temi_worker_stage_seconds_count{kind="ingest",stage="ingest"} 1.0' in text
        assert 'temi_worker_maintenance_runs_total{result="done",task="republisher"}' in text
        assert 'process="worker"' in text
        # the worker notices the end a moment later
        wait_until(lambda: 'temi_worker_busy{kind="ingest"} 0.0' in _metrics(port))
        text = _metrics(port)
        assert 'temi_worker_attempts_total{kind="ingest",outcome="succeeded"} 1.0' in text
        assert "temi_worker_heartbeat_failures_total 0.0" in text

        listening = {c.laddr.ip for c in service.worker().net_connections() if c.laddr.port == port}
        assert listening == {"127.0.0.1"}


def _metrics(port: int) -> str:
    return httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=LONG_SECONDS).text
