"""How long processes take to start, and how much memory they need.

.venv/bin/python -m benchmarks.startup
.venv/bin/python -m benchmarks.startup --before ../earlier-checkout
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.live import running_service
from benchmarks.serving import MODEL, photos, train
from temi_client import TemiClient

HERE = Path(__file__).parent.parent
MB = 1024 * 1024
_REPEATS = 3
_RECORDED_SECONDS = 3.0  # after that an API process has recorded which models it serves
Row = dict[str, Any]

# What each process imports before it starts to work.
PROCESSES = {
    "temi --help": "from app.cli.main import main; sys.argv = ['temi', '--help']; main()",
    "temi datasets list": "from app.cli.main import main; sys.argv = "
    "['temi', '--server', '127.0.0.1:9', 'datasets', 'list']; main()",
    "API": "import gc; gc.disable(); import app.main",
    "worker": "import gc; gc.disable(); import worker.main",
    "prediction process": "import app.core.serving.process",
    **{
        f"{kind} job": f"import worker.supervision.job_process, worker.jobs.{kind}"
        for kind in ("ingest", "export", "predict", "map", "cluster")
    },
}
_MEASURE = """
import contextlib, io, sys, time
from pathlib import Path
quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
with contextlib.suppress(SystemExit), quiet[0], quiet[1]:
    {code}
status = Path("/proc/self/status").read_text()
print(time.process_time(), int(status.split("VmHWM:")[1].split()[0]) / 1024)
"""
# The processes of `temi serve`, by their command lines; the first that fits.
_ROLES = {
    "decoders": r"decoding",
    "API": r"app\.server",
    "worker": r"-m worker",
    "prediction process": r"app\.core\.serving",
    "supervisor": r"serve",
}


def imports(tree: Path) -> list[Row]:
    """Return the medians of processor seconds and memory of starting each process."""
    rows = []
    for name, code in PROCESSES.items():
        runs = [_import(tree, code) for _ in range(_REPEATS)]
        cpu, memory = (statistics.median(values) for values in zip(*runs, strict=True))
        rows.append({"process": name, "CPU s": cpu, "MB": memory})
    return rows


def _import(tree: Path, code: str) -> tuple[float, ...]:
    command = [sys.executable, "-c", _MEASURE.format(code=code)]
    done = subprocess.run(
        command, env=_environment(tree), cwd=tree, capture_output=True, check=True
    )
    return tuple(float(value) for value in done.stdout.split()[-2:])


def _environment(tree: Path) -> dict[str, str]:
    """Installed packages are compiled, so the checkout may be, too."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {"PYTHONPATH": str(tree), "TEMI_LOG_LEVEL": "warning"}


def serve(tree: Path) -> list[Row]:
    """Train a small model, restart the service and predict; with times and memory."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(_environment(tree))
    os.chdir(tree)  # the service is started from here
    images, rows = photos(40, 640, 480), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_service(folder) as (url, _), TemiClient(url, timeout=600) as client:
            dataset = train(client, images, folder)
            cpu, seconds = _measured(
                lambda: client.wait(client.cluster(dataset, 10, steps=50, seed=1).id)
            )
            rows.append({"what": "small cluster job", "s": seconds, "CPU s": cpu, "MB": ""})
            _predict(url, images[0])  # so that the next start loads the model before it is ready
            time.sleep(_RECORDED_SECONDS)
        for _ in range(_REPEATS):
            started = time.perf_counter()
            with running_service(folder) as (url, pid):
                rows.append(_since(started, "serve: ready"))
                _predict(url, images[0])
                rows.append(_since(started, "serve: first prediction"))
                measured = _memory(pid)
        rows += measured
    return [{"what": "", "s": "", "CPU s": "", "MB": "", **row} for row in rows]


def _since(started: float, what: str) -> Row:
    seconds, cpu = time.perf_counter() - started, _processor_seconds()
    return {"what": what, "s": seconds, "CPU s": cpu}


def _measured(work: Callable[[], object]) -> tuple[float, float]:
    """Return the processor seconds of the service's processes during the work, and its seconds."""
    before, started = _processor_seconds(), time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    time.sleep(2)  # the worker counts the time of a job's process when it has ended
    return _processor_seconds() - before, seconds


def _processor_seconds() -> float:
    times = [p.cpu_times() for p in psutil.Process().children(recursive=True)]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def _predict(url: str, image: bytes) -> None:
    answer = httpx.post(
        f"{url}/v1/models/{MODEL}:predict", files={"file": ("1.jpg", image)}, timeout=120
    )
    answer.raise_for_status()


def _memory(pid: int) -> list[Row]:
    """Return the memory of each kind of process; shared pages count in part for each process."""
    root = psutil.Process(pid)
    found: dict[str, float] = {}
    for process in (root, *root.children(recursive=True)):
        line = " ".join(process.cmdline())
        fits = (role for role, pattern in _ROLES.items() if re.search(pattern, line))
        role = next(fits, "others")
        found[role] = found.get(role, 0.0) + process.memory_full_info().pss / MB
    found["all processes"] = sum(found.values())
    return [{"what": f"memory: {role}", "MB": amount} for role, amount in found.items()]


def main() -> None:
    from benchmarks.run import print_table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="an earlier checkout to compare with")
    options = parser.parse_args()
    trees = {"after": HERE} | ({"before": options.before.resolve()} if options.before else {})
    for what, measure in (("Imports", imports), ("Service", serve)):
        for name, tree in reversed(trees.items()):
            print(f"\n## {what}, {name}\n")
            print_table(measure(tree))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
