"""Is everything there that the service needs? Used by /readyz and by `temi doctor`.

All is looked at side by side and nothing is waited for longer than a few seconds: a server that
is frozen answers neither yes nor no.
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
from app.core.platform.migrations import is_current
from app.core.platform.probe import CheckResult, PendingProbe, Probe
from app.core.platform.settings import GiB
from app.core.runtime import Runtime
from temi.backbones.catalog import DEFAULT_BACKBONE, check_backbone

PATIENCE_SECONDS = 2.5
_LOW_BYTES, _LOW_SHARE = 1 * GiB, 0.05
_LONG_WAIT = 60.0
_BY_DATABASE = ("migrations", "workers")  # nothing is known of them without it


@dataclass(frozen=True)
class Check:
    run: Callable[[Runtime], str | None]
    """Raises if the thing is not there; returns what is worth a warning."""
    hint: str


def _check_database(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        session.execute(text("SELECT 1"))


def _check_migrations(runtime: Runtime) -> None:
    if not is_current(runtime.db):
        raise RuntimeError("the tables are not those that this version needs")


def _check_storage(runtime: Runtime) -> str | None:
    runtime.storage.write("health/probe", b"ok")
    if runtime.storage.read("health/probe") != b"ok":
        raise RuntimeError("what was written cannot be read back")
    disk = shutil.disk_usage(runtime.settings.local_dir)
    if disk.free >= max(_LOW_BYTES, _LOW_SHARE * disk.total):
        return None
    return f"nearly full: {disk.free / GiB:.1f} of {disk.total / GiB:.1f} GiB are free"


def _check_workers(runtime: Runtime) -> str | None:
    with runtime.db.read() as session:
        load = read_queue_stats(session)
        taken = worker_resources(session, runtime.settings.lease_seconds)
    return _idle_workers(load) or _nobodys_jobs(load, taken)


def _idle_workers(load: QueueStats) -> str | None:
    """A worker that is alive holds a job, or looks for jobs and sends messages for them."""
    waited = load.oldest_queued_seconds
    if waited <= _LONG_WAIT or any(job.lease_left > 0 for job in load.running):
        return None
    waiting = f"{load.queued} jobs wait, the oldest for {waited:.0f} s"
    if load.notified_seconds is not None and load.notified_seconds > _LONG_WAIT:
        return f"{waiting}, and no worker looks for them"
    return f"{waiting}, and workers look for them but take none"


def _nobodys_jobs(load: QueueStats, taken: set[str]) -> str | None:
    """If no worker says what it takes, they may be of an earlier version, and take everything."""
    waiting = (group for group in load.groups if group.status == "queued")
    needed = {KINDS[group.kind].resource for group in waiting if group.oldest_seconds > _LONG_WAIT}
    missing = sorted(needed - taken)
    if not taken or not missing:
        return None
    return f"jobs wait for {' and '.join(missing)}, and no worker takes that"


CHECKS: dict[str, Check] = {
    "database": Check(_check_database, "check TEMI_DATABASE_URL and that the database runs"),
    "migrations": Check(_check_migrations, "run `temi db upgrade`"),
    "broker": Check(
        lambda runtime: check_broker(runtime.celery),
        "check TEMI_BROKER_URL and that the broker runs",
    ),
    "storage": Check(
        _check_storage,
        "check TEMI_STORAGE_URL and that TEMI_DATA_DIR can be written; free some space",
    ),
    "weights": Check(
        lambda runtime: check_backbone(DEFAULT_BACKBONE, runtime.settings.weights_dir),
        "run `make install` again",
    ),
    "workers": Check(
        _check_workers, "start one with `temi worker`, or read its log: it may not reach the broker"
    ),
}


class Health:
    """The checks of one process; `models` tells how far an API is with those in use."""

    def __init__(self, runtime: Runtime, models: Callable[[], CheckResult] | None = None) -> None:
        self._models = models
        self._probes = {
            name: Probe(partial(_find, check, runtime)) for name, check in CHECKS.items()
        }

    def check(self) -> dict[str, CheckResult]:
        looks = self._start()
        wait(looks.values(), timeout=PATIENCE_SECONDS)
        return _findings(looks)

    async def check_async(self) -> dict[str, CheckResult]:
        """The same, without a thread of the pool: requests that hang may hold all of those."""
        looks = self._start()
        waited_for = [asyncio.wrap_future(look) for look in looks.values()]
        _, late = await asyncio.wait(waited_for, timeout=PATIENCE_SECONDS)
        for future in late:
            future.cancel()
        found = _findings(looks)
        return found if self._models is None else {**found, "models": self._models()}

    def _start(self) -> dict[str, PendingProbe[CheckResult]]:
        return {name: probe.start() for name, probe in self._probes.items()}


def _find(check: Check, runtime: Runtime) -> CheckResult:
    started = time.monotonic()
    try:
        warning = check.run(runtime)
    except Exception as error:  # noqa: BLE001 - whatever is wrong is the finding
        detail = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        return CheckResult("failed", time.monotonic() - started, detail, check.hint)
    seconds = time.monotonic() - started
    return (
        CheckResult("warning", seconds, warning, check.hint)
        if warning
        else CheckResult("ok", seconds)
    )


def _findings(looks: Mapping[str, PendingProbe[CheckResult]]) -> dict[str, CheckResult]:
    found = {
        name: look.result() if look.done() else _no_answer(name, look)
        for name, look in looks.items()
    }
    if not found["database"].ok:
        for name in (name for name in _BY_DATABASE if not found[name].ok):
            seconds = found[name].seconds
            found[name] = CheckResult("unknown", seconds, "not to be known without the database")
    return found


def _no_answer(name: str, look: PendingProbe[CheckResult]) -> CheckResult:
    seconds = time.monotonic() - look.started
    return CheckResult("failed", seconds, f"no answer for {seconds:.1f} s", CHECKS[name].hint)
