"""Metrics that are read from the database and the disk at the time of the scrape."""

import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import structlog
from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.core.jobs.queue_stats import QueueStats, read_queue_stats
from app.core.platform.probe import Probe
from app.core.runtime import Runtime

_CACHE_SECONDS = 2.0  # scrapes in this time share one query
_TIMEOUT_SECONDS = 2.0  # for a database that does not respond
log = structlog.get_logger()


@dataclass(frozen=True)
class _Snapshot:
    stats: QueueStats | None  # None if the database did not respond
    seconds: float
    at: float


class StateCollector(Collector):
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = Probe(self._read)
        self._lock = threading.Lock()
        self._snapshot = _Snapshot(None, 0.0, float("-inf"))

    def describe(self) -> list[Metric]:
        return []  # registering must not touch the database

    def collect(self) -> Iterator[Metric]:
        snapshot = self._refresh()
        yield _gauge("database_up", "1 if the database responded.", int(snapshot.stats is not None))
        yield _gauge(
            "database_query_seconds", "Duration of the query for these metrics.", snapshot.seconds
        )
        if snapshot.stats is not None:
            yield from _jobs(snapshot.stats, self._runtime.settings.lease_seconds)
        yield from self._disk()

    def _refresh(self) -> _Snapshot:
        with self._lock:
            if time.monotonic() - self._snapshot.at > _CACHE_SECONDS:
                started = time.monotonic()
                stats = self._query()
                now = time.monotonic()
                self._snapshot = _Snapshot(stats, now - started, now)
            return self._snapshot

    def _query(self) -> QueueStats | None:
        try:
            return self._database.start().result(_TIMEOUT_SECONDS)
        except Exception as error:  # noqa: BLE001 - the other metrics are still valid
            log.warning("database_metrics_failed", reason=str(error) or type(error).__name__)
            return None

    def _read(self) -> QueueStats:
        with self._runtime.db.read() as session:
            return read_queue_stats(session)

    def _disk(self) -> Iterator[Metric]:
        try:
            disk = shutil.disk_usage(self._runtime.settings.local_dir)
        except OSError as error:
            log.warning("disk_metrics_failed", reason=str(error))
            return
        yield _gauge("storage_free_bytes", "Free bytes on the disk of the data folder.", disk.free)
        yield _gauge("storage_total_bytes", "Size of the disk of the data folder.", disk.total)


def _jobs(stats: QueueStats, lease_seconds: float) -> Iterator[Metric]:
    counts = GaugeMetricFamily("temi_jobs", "Jobs by kind and status.", labels=["kind", "status"])
    for group in stats.groups:
        counts.add_metric([group.kind, group.status], group.count)
    yield counts
    yield _gauge("jobs_queued", "Jobs that wait for a worker.", stats.queued)
    age = "Age of the oldest queued job."
    yield _gauge("oldest_queued_job_seconds", age, stats.oldest_queued_seconds)
    yield from _running(stats, lease_seconds)
    yield _gauge("webhooks_waiting", "Webhooks that wait to be sent.", stats.webhooks_waiting)


def _running(stats: QueueStats, lease_seconds: float) -> Iterator[Metric]:
    """By stage, not by job: a time series for every job would overload Prometheus."""
    labels = ["kind", "stage"]
    by_stage = defaultdict(list)
    for job in stats.running:
        by_stage[job.kind, job.stage or "starting"].append(job)
    count = GaugeMetricFamily("temi_jobs_running", "Jobs that run on a worker.", labels=labels)
    age = GaugeMetricFamily(
        "temi_job_heartbeat_age_seconds",
        "Largest time since the last heartbeat of a job.",
        labels=labels,
    )
    rate = GaugeMetricFamily(
        "temi_job_items_per_second", "Images or training steps per second.", labels=labels
    )
    for stage, jobs in by_stage.items():
        count.add_metric(stage, len(jobs))
        age.add_metric(stage, max(0.0, lease_seconds - min(job.lease_left for job in jobs)))
        rate.add_metric(stage, sum(job.rate or 0.0 for job in jobs))
    yield from (count, age, rate)


def _gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(f"temi_{name}", help_, value=value)
