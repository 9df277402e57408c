"""Several API processes behind one address: a look at any of them must tell of all.

They count in files that the one which is asked adds up. The files belong to one start of the API
and lie in a folder that is named after the process that started it.
"""

import os
import shutil
import tempfile
from pathlib import Path

from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_PREFIX = "temi-metrics-"


def share_figures() -> Path:
    """To be called before the first figure is made: from then on all are kept in files."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{_PREFIX}*"):
        if not _is_alive(left.name.removeprefix(_PREFIX)):
            shutil.rmtree(left, ignore_errors=True)
    folder = parent / f"{_PREFIX}{os.getppid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
    return folder


def shared_registry(folder: Path) -> CollectorRegistry:
    """The figures of all processes that are or were; gauges only of those that are."""
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
    except PermissionError:  # it is somebody else's
        return True
    return True
