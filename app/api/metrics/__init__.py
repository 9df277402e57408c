"""Figures for Prometheus: of requests, of predictions, and of what the database knows."""

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from app.api.metrics.http import HttpMetrics
from app.api.metrics.serving import ServingMetrics
from app.api.metrics.state import StateCollector
from app.core.build import build_info
from app.core.lookout import Look, Lookout
from app.core.runtime import Runtime

__all__ = ["HttpMetrics", "Metrics", "ServingMetrics"]


class Metrics:
    """Everything that `/metrics` of this process shows."""

    def __init__(self, runtime: Runtime) -> None:
        self._registry = CollectorRegistry()
        self.http = HttpMetrics(self._registry)
        self.serving = ServingMetrics(self._registry)
        self._registry.register(StateCollector(runtime))
        ProcessCollector(registry=self._registry)
        build_info(self._registry, "api")

        self._lookout = Lookout(self._render)

    def look(self) -> Look[bytes]:
        """In a thread of its own: the pool's may all be waiting for the database."""
        return self._lookout.start()

    def _render(self) -> bytes:
        return generate_latest(self._registry)
