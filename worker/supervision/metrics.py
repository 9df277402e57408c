"""Prometheus metrics of a worker, served on its own port."""

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)

from app.core.platform.settings import Settings
from app.core.platform.version import build_info

# From a stage that is nearly done to a fine-tuning overnight.
_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0)
log = structlog.get_logger()


class WorkerMetrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        by_stage = ["kind", "stage"]
        self.stage_seconds = Histogram(
            "temi_worker_stage_seconds",
            "Duration of stages that were run.",
            by_stage,
            buckets=_SECONDS,
            registry=registry,
        )
        self.stages_skipped = Counter(
            "temi_worker_stages_skipped",
            "Stages that were skipped because their result existed.",
            by_stage,
            registry=registry,
        )
        self.items = Counter(
            "temi_worker_items", "Images or training steps processed.", by_stage, registry=registry
        )
        self.attempts = Counter(
            "temi_worker_attempts",
            "Attempts at jobs by outcome: succeeded, failed, cancelled, crashed, released (the "
            "worker stopped) or lost (the lease expired).",
            ["kind", "outcome"],
            registry=registry,
        )
        self.shards = Counter(
            "temi_worker_shards",
            "Shards of other workers' jobs that this worker has run.",
            ["stage"],
            registry=registry,
        )
        self.busy = Gauge(
            "temi_worker_busy", "1 while a job of this kind runs.", ["kind"], registry=registry
        )
        self.heartbeat_failures = Counter(
            "temi_worker_heartbeat_failures",
            "Heartbeats that did not reach the database.",
            registry=registry,
        )
        self.maintenance_runs = Counter(
            "temi_worker_maintenance_runs",
            "Runs of the maintenance threads.",
            ["task", "result"],
            registry=registry,
        )
        ProcessCollector(registry=registry)
        build_info(registry, "worker")

    def serve(self, settings: Settings) -> None:
        """Serves in a thread, also while a job runs. The worker runs even if the port is taken."""
        host, port = settings.metrics_host, settings.metrics_port
        if not port:
            return
        try:
            start_http_server(port, host, self.registry)
        except OSError as error:
            log.error("metrics_server_failed", host=host, port=port, reason=str(error))


metrics = WorkerMetrics()
"""A process is one worker."""
