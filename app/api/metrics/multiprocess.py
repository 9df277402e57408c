"""Metrics of several API processes behind one address: a scrape of any must show all.

Each process counts in files, which the scraped process adds up. The files are in a folder that is
named after the parent process, so that they belong to one start of the API.
"""

import os
import shutil
import tempfile
from pathlib import Path

from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_PREFIX = "temi-metrics-"


def start_multiprocess() -> Path:
    """Keeps all metrics in files; has to be called before the first metric is created."""
    parent = Path(tempfile.gettempdir())
    for stale in parent.glob(f"{_PREFIX}*"):
        if not _is_alive(stale.name.removeprefix(_PREFIX)):
            shutil.rmtree(stale, ignore_errors=True)
    folder = parent / f"{_PREFIX}{os.getppid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
    return folder


def multiprocess_registry(folder: Path) -> CollectorRegistry:
    """The metrics of all processes; gauges only of those that are alive."""
    for file in folder.glob("gauge_live*.db"):
        pid = file.stem.rpartition("_")[2]
        if not _is_alive(pid):
            mark_process_dead(int(pid), str(folder))  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return registry


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:  # a process of another user
        return True
    return True
