"""A job whose process always dies fails by itself and delays other jobs little."""

import threading
import time
from pathlib import Path

import psutil

from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.site import Site
from tests.chaos.work import job_row, upload, wait_for_all_jobs
from tests.promises import Promises

_WAIT_SECONDS = 60.0


def test_a_poisonous_job(
    start_some_site: StartSite, archives: Path, profile: Profile, promises: Promises
) -> None:
    with start_some_site(workers=1) as site, site.client() as client:
        poison = upload(client, 0, archives)
        stopping = threading.Event()
        killer = threading.Thread(target=_kill_processes_of, args=(site, poison, stopping))
        killer.start()
        started = time.monotonic()
        innocent = [upload(client, 1, archives) for _ in range(profile.innocents)]
        try:
            wait_for_all_jobs(site)
        finally:
            stopping.set()
            killer.join()
        waited = time.monotonic() - started
        ended = job_row(site.runtime, poison)
        others = [job_row(site.runtime, job_id) for job_id in innocent]
    code = (ended.error or {}).get("code")
    unaffected = [job for job in others if job.status == "succeeded" and job.crashes == 0]
    promises.keep(
        f"poison job ({site.runtime.db.engine.name})",
        f"`worker_crashed` after 3 crashes; {len(others)} others unaffected within "
        f"{_WAIT_SECONDS:.0f} s",
        f"`{code}` after {ended.crashes}; {len(unaffected)} others unaffected within "
        f"{waited:.0f} s",
        kept=(code, ended.crashes) == ("worker_crashed", 3)
        and len(unaffected) == len(others)
        and profile.in_time(waited, _WAIT_SECONDS),
    )


def _kill_processes_of(site: Site, job_id: str, stopping: threading.Event) -> None:
    """Kills every process of this job as soon as it starts."""
    (worker,) = site.workers
    while not stopping.wait(0.02):
        before = job_row(site.runtime, job_id)
        found = worker.jobs()
        after = job_row(site.runtime, job_id)
        # the same attempt before and after: the process found in between is its own
        if before.status == after.status == "running" and before.fence == after.fence:
            for process in found:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
