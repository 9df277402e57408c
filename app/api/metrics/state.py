"""What the database and the disk say at the time of the look."""

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

_KEPT_SECONDS = 2.0  # scrapes, however many, cost one look in this time
_PATIENCE_SECONDS = 2.0  # for a database that does not answer
log = structlog.get_logger()


@dataclass(frozen=True)
class _Seen:
    load: QueueStats | None  # none if the database did not answer
    seconds: float
    at: float


class StateCollector(Collector):
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = Probe(self._read)
        self._lock = threading.Lock()
        self._seen = _Seen(None, 0.0, float("-inf"))

    def describe(self) -> list[Metric]:
        return []  # registering must not touch the database

    def collect(self) -> Iterator[Metric]:
        seen = self._look()
        yield _gauge("database_up", "1 if the database answered.", int(seen.load is not None))
        yield _gauge("database_look_seconds", "What reading these figures took.", seen.seconds)
        if seen.load is not None:
            yield from _jobs(seen.load, self._runtime.settings.lease_seconds)
        yield from self._disk()

    def _look(self) -> _Seen:
        with self._lock:
            if time.monotonic() - self._seen.at > _KEPT_SECONDS:
                started = time.monotonic()
                load = self._load()
                now = time.monotonic()
                self._seen = _Seen(load, now - started, now)
            return self._seen

    def _load(self) -> QueueStats | None:
        try:
            return self._database.start().result(_PATIENCE_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other figures are still true
            log.warning("database_figures_missing", reason=str(error) or type(error).__name__)
            return None

    def _read(self) -> QueueStats:
        with self._runtime.db.read() as session:
            return read_queue_stats(session)

    def _disk(self) -> Iterator[Metric]:
        try:
            disk = shutil.disk_usage(self._runtime.settings.local_dir)
        except OSError as error:
            log.warning("disk_figures_missing", reason=str(error))
            return
        yield _gauge("storage_free_bytes", "Room on the disk of the data folder.", disk.free)
        yield _gauge("storage_total_bytes", "Size of the disk of the data folder.", disk.total)


def _jobs(load: QueueStats, lease_seconds: float) -> Iterator[Metric]:
    counts = GaugeMetricFamily("temi_jobs", "Jobs by state.", labels=["kind", "status"])
    for group in load.groups:
        counts.add_metric([group.kind, group.status], group.count)
    yield counts
    yield _gauge("jobs_queued", "Jobs that wait for a worker.", load.queued)
    age = "How long the first of the waiting jobs has waited."
    yield _gauge("oldest_queued_job_seconds", age, load.oldest_queued_seconds)
    yield from _running(load, lease_seconds)
    yield _gauge("webhooks_waiting", "Webhooks that are to be sent.", load.webhooks_waiting)


def _running(load: QueueStats, lease_seconds: float) -> Iterator[Metric]:
    """By stage, not by job: a series for every job that ever ran would fill Prometheus."""
    labels = ["kind", "stage"]
    by_stage = defaultdict(list)
    for job in load.running:
        by_stage[job.kind, job.stage or "starting"].append(job)
    count = GaugeMetricFamily("temi_jobs_running", "Jobs that a worker holds.", labels=labels)
    age = GaugeMetricFamily(
        "temi_job_heartbeat_age_seconds",
        "Since the last heartbeat, of the job whose worker has been silent longest.",
        labels=labels,
    )
    rate = GaugeMetricFamily(
        "temi_job_items_per_second", "Images, or training steps, a second.", labels=labels
    )
    for stage, jobs in by_stage.items():
        count.add_metric(stage, len(jobs))
        age.add_metric(stage, max(0.0, lease_seconds - min(job.lease_left for job in jobs)))
        rate.add_metric(stage, sum(job.rate or 0.0 for job in jobs))
    yield from (count, age, rate)


def _gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(f"temi_{name}", help_, value=value)
