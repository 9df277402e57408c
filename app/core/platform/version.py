"""The version of this installation."""

import platform
from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector


def package_version() -> str:
    return version("temi-service")


class _BuildInfo(Collector):
    def __init__(self, process: str) -> None:
        self._values = [process, package_version(), platform.python_version()]

    def collect(self) -> Iterator[Metric]:
        labels = ["process", "version", "python"]
        info = GaugeMetricFamily("temi_build_info", "What runs.", labels=labels)
        info.add_metric(self._values, 1)
        yield info


def build_info(registry: CollectorRegistry, process: str) -> None:
    """Registers a gauge that is always 1; its labels are the process and its versions."""
    registry.register(_BuildInfo(process))
