"""What this installation is."""

import platform
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Gauge


def build_info(registry: CollectorRegistry, process: str) -> None:
    """A figure that is always 1; its labels tell which process runs which version."""
    info = Gauge(
        "temi_build_info", "What runs.", ["process", "version", "python"], registry=registry
    )
    info.labels(process, version("temi-service"), platform.python_version()).set(1)
