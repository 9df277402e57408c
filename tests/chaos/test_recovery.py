"""How long a job waits after its worker was killed, with the default settings."""

import time
from pathlib import Path

import pytest

from tests.chaos.conftest import StartSite
from tests.chaos.work import KINDS, job_row, upload
from tests.promises import Promises
from tests.waiting import wait_until


@pytest.mark.usefixtures("only_in_full")
def test_another_worker_resumes_in_time(
    start_any_site: StartSite, archives: Path, promises: Promises
) -> None:
    with start_any_site(times={}) as site, site.client() as client:
        settings = site.settings
        # 60 s of lease, 5 s to the next query, 5 s for the notification
        asked = settings.lease_seconds + settings.maintenance_seconds + 5.0
        job_id = upload(client, KINDS - 1, archives)
        wait_until(lambda: site.busy_workers(), "a worker has taken the job")
        (victim,) = site.busy_workers()
        victim.process.kill()
        killed_at = time.monotonic()
        wait_until(lambda: job_row(site.runtime, job_id).fence == 2, "another attempt")
        recovered = time.monotonic() - killed_at
        ended = client.wait(job_id)
    promises.keep(
        f"recovery ({site.runtime.db.engine.name})",
        f"<= {asked:.0f} s from the kill, lease {settings.lease_seconds:.0f} s",
        f"{recovered:.1f} s; the job has {ended.status}",
        kept=recovered <= asked and ended.status == "succeeded",
    )
