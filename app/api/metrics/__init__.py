"""Figures for Prometheus: of requests, of predictions, and of what the database knows."""

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from app.api.metrics.http import HttpMetrics
from app.api.metrics.serving import ServingMetrics
from app.api.metrics.shared import share_figures, shared_registry
from app.api.metrics.state import StateCollector
from app.core.platform.probe import PendingProbe, Probe
from app.core.platform.version import build_info
from app.core.runtime import Runtime

__all__ = ["HttpMetrics", "Metrics", "ServingMetrics"]


class Metrics:
    """Everything that `/metrics` of this process shows."""

    def __init__(self, runtime: Runtime) -> None:
        self._folder = share_figures() if runtime.settings.api_workers > 1 else None
        self._counted = CollectorRegistry()
        self._queried = CollectorRegistry()
        self.http = HttpMetrics(self._counted)
        self.serving = ServingMetrics(self._counted)
        self._queried.register(StateCollector(runtime))
        build_info(self._queried, "api")
        if self._folder is None:  # else it would tell of one process, and every time of another
            ProcessCollector(registry=self._queried)
        self._probe = Probe(self._render)

    def render(self) -> PendingProbe[bytes]:
        """In a thread of its own: the pool's may all be waiting for the database."""
        return self._probe.start()

    def _render(self) -> bytes:
        counted = self._counted if self._folder is None else shared_registry(self._folder)
        return generate_latest(counted) + generate_latest(self._queried)
