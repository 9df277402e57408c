"""Prometheus metrics of requests, predictions, jobs and the disk."""

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from app.api.metrics.http import HttpMetrics
from app.api.metrics.multiprocess import multiprocess_registry, start_multiprocess
from app.api.metrics.serving import ServingMetrics
from app.api.metrics.state import StateCollector
from app.core.platform.probe import PendingProbe, Probe
from app.core.platform.version import build_info
from app.core.runtime import Runtime

__all__ = ["HttpMetrics", "Metrics", "ServingMetrics"]


class Metrics:
    """All metrics of `/metrics`."""

    def __init__(self, runtime: Runtime) -> None:
        self._folder = start_multiprocess() if runtime.settings.api_workers > 1 else None
        self._counters = CollectorRegistry()
        self._state = CollectorRegistry()
        self.http = HttpMetrics(self._counters)
        self.serving = ServingMetrics(self._counters)
        self._state.register(StateCollector(runtime))
        build_info(self._state, "api")
        if self._folder is None:  # otherwise each scrape would show another process
            ProcessCollector(registry=self._state)
        self._probe = Probe(self._render)

    def render(self) -> PendingProbe[bytes]:
        """Renders in a thread of its own: those of the pool may all wait for the database."""
        return self._probe.start()

    def _render(self) -> bytes:
        counters = self._counters if self._folder is None else multiprocess_registry(self._folder)
        return generate_latest(counters) + generate_latest(self._state)
