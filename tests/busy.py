"""Runs a command while other processes keep the CPUs busy.

    python -m tests.busy [--loops 4] [--hours 3] command ...

Shows that tests do not depend on how busy the machine is: `make test-busy` runs all of them so.
The busy processes end with the command, with this process, and after their time at the latest.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from app.core.platform.processes import die_with_parent

_LOOP = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
"""


@contextmanager
def busy(loops: int, seconds: float) -> Iterator[list[int]]:
    """Starts busy processes for the block; returns their ids."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(loops):
            started.append(
                subprocess.Popen(
                    [sys.executable, "-S", "-c", _LOOP, str(seconds)],
                    preexec_fn=partial(die_with_parent, os.getpid()),
                )
            )
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.busy")
    parser.add_argument("--loops", type=int, default=4)
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    with busy(given.loops, given.hours * 3600):
        return subprocess.run(given.command).returncode


if __name__ == "__main__":
    sys.exit(main())
