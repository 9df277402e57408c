"""Runs a function in a process with the documented limits of memory and time, set in the kernel.

`python -m tests.bounded MODULE:FUNCTION ARGUMENT...` prints what the function returns.
"""

import importlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

MEMORY = 300 * 1024 * 1024  # on top of what the imported program takes
CPU_SECONDS = 30  # ten on the processors that the promise is measured on
_ROOT = Path(__file__).parents[1]


def call_bounded(function: str, *arguments: str) -> Any:
    """What `module:function` returns, if it returns within the limits; else the test fails."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bounded", function, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )
    error = done.stderr.strip().splitlines()[-1:] or [f"signal {-done.returncode}"]
    assert done.returncode == 0, f"not within the limits of memory and time: {error[0][:500]}"
    return json.loads(done.stdout)


def _main(function: str, *arguments: str) -> None:
    module, _, name = function.partition(":")
    called = getattr(importlib.import_module(module), name)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    seconds = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    print(json.dumps(called(*arguments)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
