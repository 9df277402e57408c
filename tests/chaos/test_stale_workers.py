"""A worker that resumes after its lease has expired does no harm."""

import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from app.core.runtime import Runtime
from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.site import Member, Site
from tests.chaos.work import KINDS, dataset_bits, job_row, undisturbed, upload
from tests.freezing import is_locked
from tests.leases import expire_lease
from tests.promises import Promises
from tests.waiting import wait_until

_LARGE = KINDS - 1


def test_stale_workers_are_fenced(
    start_some_site: StartSite,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    stale = []
    with start_some_site() as site:
        _, bits = undisturbed(site, archives, [_LARGE])
        for _ in range(profile.stale_workers):
            job_id = _disturb(site, archives, rng)
            before = _state(site.runtime, job_id)
            _wake(site)
            after = _state(site.runtime, job_id)
            if after != before or after["bits"] != bits[_LARGE]:
                stale.append((job_id, before, after))
        engine = site.runtime.db.engine.name
    promises.keep(
        f"stale worker fenced ({engine})",
        f"0 stale writes; {profile.stale_workers} workers stopped past their lease",
        f"{len(stale)} stale writes; {profile.stale_workers} workers",
        kept=not stale,
    )


def _disturb(site: Site, archives: Path, rng: random.Random) -> str:
    """Runs a job that one worker begins and another finishes; the first one is still suspended.

    The lease ends by our word: the machine may be so busy that one of a few seconds would run out
    on the second worker as well.
    """
    with site.client() as client:
        job_id = upload(client, _LARGE, archives)
    wait_until(lambda: job_row(site.runtime, job_id).worker, "a worker has taken the job")
    time.sleep(rng.uniform(0.0, 2.5))  # while it starts, reads, writes or ends
    _stop(_holder(site, job_id))
    if job_row(site.runtime, job_id).status == "succeeded" or _is_locked(site):  # skip this one
        _wake(site)
        return _disturb(site, archives, rng)
    expire_lease(site.runtime.db, job_id)
    wait_until(lambda: job_row(site.runtime, job_id).status == "succeeded", "it is done")
    return job_id


def _holder(site: Site, job_id: str) -> Member:
    """Returns the worker of the job. Not any busy worker: another may still end the job before,
    and if both were stopped, there would be none to go on."""
    name = job_row(site.runtime, job_id).worker or ""
    (worker,) = [worker for worker in site.workers if name.endswith(f":{worker.pid}")]
    return worker


def _is_locked(site: Site) -> bool:
    """SQLite only: a process suspended within a write locks the file until it continues."""
    if site.runtime.db.engine.name != "sqlite":
        return False
    return is_locked(Path(site.runtime.db.engine.url.database or ""))


def _stop(worker: Member) -> None:
    psutil.Process(worker.pid).suspend()  # from now on it starts no process
    for process in worker.jobs():
        with suppress(psutil.NoSuchProcess):  # it has just ended
            process.suspend()


def _wake(site: Site) -> None:
    """Resumes the job process first: no supervisor ends it before it has tried to write."""
    stopped = [worker for worker in site.workers if _is_stopped(worker)]
    jobs = [job for worker in stopped for job in worker.jobs()]
    for job in jobs:
        job.resume()
    psutil.wait_procs(jobs, timeout=3)  # no longer: some hang until their worker resumes
    for worker in stopped:
        worker.send(signal.SIGCONT)
    wait_until(lambda: not site.busy_workers(), "the stale workers have ended")


def _is_stopped(worker: Member) -> bool:
    return psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED


def _state(runtime: Runtime, job_id: str) -> dict[str, Any]:
    job = job_row(runtime, job_id)
    row = {"status": job.status, "fence": job.fence, "version": job.version, "result": job.result}
    return row | {"bits": dataset_bits(runtime, job.dataset_id)}
