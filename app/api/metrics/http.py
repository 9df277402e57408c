"""Prometheus figures of this process, and of the job table at the time of the look."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from app.core.runtime import Runtime
from app.core.tables import Job


class HttpMetrics:
    def __init__(self, runtime: Runtime) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "temi_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "temi_http_request_seconds",
            "Time to answer.",
            ["method", "route"],
            registry=self._registry,
        )
        self._registry.register(_Jobs(runtime))

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)

    def render(self) -> bytes:
        return generate_latest(self._registry)


class _Jobs(Collector):
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # registering must not touch the database

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily("temi_jobs", "Jobs by state.", labels=["kind", "status"])
        with self._runtime.db.read() as session:
            counts = session.execute(
                select(Job.kind, Job.status, func.count()).group_by(Job.kind, Job.status)
            )
            for kind, status, count in counts:
                family.add_metric([kind, status], count)
        yield family
