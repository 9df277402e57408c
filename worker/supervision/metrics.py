"""What this worker has done, for Prometheus: an address of its own, for it has no API."""

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

# From a stage whose artifacts are nearly there to a fine-tuning over night.
_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0)
log = structlog.get_logger()


class WorkerMetrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        by_stage = ["kind", "stage"]
        self.stage_seconds = Histogram(
            "temi_worker_stage_seconds",
            "A stage that was done, from its start to its end.",
            by_stage,
            buckets=_SECONDS,
            registry=registry,
        )
        self.stages_skipped = Counter(
            "temi_worker_stages_skipped",
            "Stages whose result was there.",
            by_stage,
            registry=registry,
        )
        self.items = Counter(
            "temi_worker_items", "Images, or training steps, done.", by_stage, registry=registry
        )
        self.attempts = Counter(
            "temi_worker_attempts",
            "Tries at a job by how they ended: succeeded, failed, cancelled, crashed, released or "
            "lost to another worker.",
            ["kind", "outcome"],
            registry=registry,
        )
        self.shards = Counter(
            "temi_worker_shards",
            "Pieces of other workers' jobs that this one has done.",
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
            "Rounds of the maintenance threads.",
            ["task", "result"],
            registry=registry,
        )
        ProcessCollector(registry=registry)
        build_info(registry, "worker")

    def serve(self, settings: Settings) -> None:
        """Answers in a thread of its own, also while a job runs. Jobs matter more than figures:
        an address that is taken is no reason not to work."""
        host, port = settings.metrics_host, settings.metrics_port
        if not port:
            return
        try:
            start_http_server(port, host, self.registry)
        except OSError as error:
            log.error("metrics_not_served", host=host, port=port, reason=str(error))


metrics = WorkerMetrics()
"""Of this process: it is one worker."""
