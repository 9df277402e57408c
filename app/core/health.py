"""Health checks of what the service needs, for /readyz and `temi doctor`.

All checks run concurrently, with a timeout of a few seconds: a frozen server does not respond at
all.
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial

from sqlalchemy import text

from app.core.jobs.kinds import KINDS
from app.core.jobs.queue import check_broker
from app.core.jobs.queue_stats import QueueStats, read_queue_stats
from app.core.jobs.workers import worker_resources
from app.core.platform.db import Database
from app.core.platform.migrations import is_current
from app.core.platform.probe import CheckResult, PendingProbe, Probe
from app.core.platform.settings import GiB
from app.core.runtime import Runtime
from app.core.storage.keys import HEALTH_PROBE
from temi.backbones.catalog import DEFAULT_BACKBONE, check_backbone

TIMEOUT_SECONDS = 2.5
_MIN_FREE_BYTES, _MIN_FREE_SHARE = 1 * GiB, 0.05
_LONG_WAIT = 60.0
_NEED_DATABASE = ("migrations", "workers")


@dataclass(frozen=True)
class Check:
    run: Callable[[Runtime], str | None]
    """Raises an error if the check fails; returns a warning or None."""
    hint: str


def _check_database(db: Database) -> None:
    with db.read() as session:
        session.execute(text("SELECT 1"))


def _check_migrations(db: Database) -> None:
    if not is_current(db):
        raise RuntimeError("the tables have another revision than this release needs")


def _check_storage(runtime: Runtime) -> str | None:
    runtime.storage.write(HEALTH_PROBE, b"ok")
    if runtime.storage.read(HEALTH_PROBE) != b"ok":
        raise RuntimeError("a written file cannot be read back")
    disk = shutil.disk_usage(runtime.settings.local_dir)
    if disk.free >= max(_MIN_FREE_BYTES, _MIN_FREE_SHARE * disk.total):
        return None
    return f"nearly full: {disk.free / GiB:.1f} of {disk.total / GiB:.1f} GiB are free"


def _check_workers(runtime: Runtime) -> str | None:
    with runtime.db.read() as session:
        stats = read_queue_stats(session)
        taken = worker_resources(session, runtime.settings.lease_seconds)
    return _unclaimed_jobs(stats) or _missing_resources(stats, taken)


def _unclaimed_jobs(stats: QueueStats) -> str | None:
    """A live worker runs a job, or checks for due jobs and sends notifications for them."""
    waited = stats.oldest_queued_seconds
    if waited <= _LONG_WAIT or any(job.lease_left > 0 for job in stats.running):
        return None
    queued = f"{stats.queued} jobs are queued, the oldest for {waited:.0f} s"
    if stats.notified_seconds is not None and stats.notified_seconds > _LONG_WAIT:
        return f"{queued}, and no worker checks for them"
    return f"{queued}, and workers check for them but claim none"


def _missing_resources(stats: QueueStats, taken: set[str]) -> str | None:
    waiting = (group for group in stats.groups if group.status == "queued")
    needed = {KINDS[group.kind].resource for group in waiting if group.oldest_seconds > _LONG_WAIT}
    missing = sorted(needed - taken)
    if not taken or not missing:
        return None
    return f"jobs are queued for {' and '.join(missing)}, and no worker has it"


CHECKS: dict[str, Check] = {
    "database": Check(
        lambda runtime: _check_database(runtime.db),
        "check TEMI_DATABASE_URL and that the database runs",
    ),
    "migrations": Check(lambda runtime: _check_migrations(runtime.db), "run `temi db upgrade`"),
    "broker": Check(
        lambda runtime: check_broker(runtime.settings),
        "check TEMI_BROKER_URL and that the broker runs",
    ),
    "storage": Check(
        _check_storage,
        "check TEMI_STORAGE_URL, that TEMI_DATA_DIR is writable, and free some space",
    ),
    "weights": Check(
        lambda runtime: check_backbone(DEFAULT_BACKBONE, runtime.settings.weights_dir),
        "run `make install` again",
    ),
    "workers": Check(
        _check_workers,
        "start a worker with `temi worker`, or read its log: it may not reach the broker",
    ),
}


class Health:
    """The checks of one process; `models` returns the state of an API's preloaded models."""

    def __init__(self, runtime: Runtime, models: Callable[[], CheckResult] | None = None) -> None:
        self._models = models
        self._probes = {
            name: Probe(partial(_run, check, runtime)) for name, check in CHECKS.items()
        }

    def check(self) -> dict[str, CheckResult]:
        probes = self._start()
        wait(probes.values(), timeout=TIMEOUT_SECONDS)
        return _results(probes)

    async def check_async(self) -> dict[str, CheckResult]:
        """The same without a thread of the pool: hanging requests may hold all of them."""
        probes = self._start()
        futures = [asyncio.wrap_future(probe) for probe in probes.values()]
        _, late = await asyncio.wait(futures, timeout=TIMEOUT_SECONDS)
        for future in late:
            future.cancel()
        found = _results(probes)
        return found if self._models is None else {**found, "models": self._models()}

    def _start(self) -> dict[str, PendingProbe[CheckResult]]:
        return {name: probe.start() for name, probe in self._probes.items()}


def _run(check: Check, runtime: Runtime) -> CheckResult:
    started = time.monotonic()
    try:
        warning = check.run(runtime)
    except Exception as error:  # noqa: BLE001 - any error is a failed check
        detail = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        return CheckResult("failed", time.monotonic() - started, detail, check.hint)
    seconds = time.monotonic() - started
    return (
        CheckResult("warning", seconds, warning, check.hint)
        if warning
        else CheckResult("ok", seconds)
    )


def _results(probes: Mapping[str, PendingProbe[CheckResult]]) -> dict[str, CheckResult]:
    found = {
        name: probe.result() if probe.done() else _timed_out(name, probe)
        for name, probe in probes.items()
    }
    if not found["database"].ok:
        for name in (name for name in _NEED_DATABASE if not found[name].ok):
            seconds = found[name].seconds
            found[name] = CheckResult("unknown", seconds, "not known without the database")
    return found


def _timed_out(name: str, probe: PendingProbe[CheckResult]) -> CheckResult:
    seconds = time.monotonic() - probe.started
    return CheckResult("failed", seconds, f"no response for {seconds:.1f} s", CHECKS[name].hint)
