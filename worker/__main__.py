"""`python -m worker`: the program of the worker.

Not `celery worker`, whose command line takes as long to import as all of this.
"""

import sys

from app.core.platform.starting import importing

with importing():
    from worker.main import celery

# One job at a time, in this process's child: the pool must not fork under CUDA.
program = celery.Worker(
    pool="solo",
    loglevel="WARNING",
    quiet=True,
    without_gossip=True,
    without_mingle=True,
    without_heartbeat=True,
)
program.start()
sys.exit(program.exitcode)
