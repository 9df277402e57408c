"""Cancelled jobs end soon, wherever they are. With the settings that the service comes with."""

import random
import time
from pathlib import Path

import pytest

from temi_client import ApiError, TemiClient
from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.report import Promises, Row, longest
from tests.chaos.site import Site, wait_until
from tests.chaos.work import KINDS, job_row, upload

_LARGE = KINDS - 1
_QUEUED_SECONDS, _RUNNING_SECONDS = 1.0, 15.0


@pytest.mark.timeout(900)
def test_cancelling_at_any_point(
    start_site: StartSite,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    with start_site(workers=1, times={}) as site, site.client() as client:
        running = [
            _cancel_running(site, client, archives, rng) for _ in range(profile.running_cancels)
        ]
        queued = _cancel_queued(site, client, archives, profile.queued_cancels)
    promises.keep_all(
        Row(
            "cancel, running",
            f"<= {_RUNNING_SECONDS:.0f} s; {profile.running_cancels} at random points",
            f"{longest(running)}; {len(running)} jobs",
            max(running) <= _RUNNING_SECONDS,
        ),
        Row(
            "cancel, queued",
            f"<= {_QUEUED_SECONDS:.0f} s; {profile.queued_cancels} jobs",
            f"{longest(queued)}; {len(queued)} jobs",
            max(queued) <= _QUEUED_SECONDS,
        ),
    )


def _cancel_running(site: Site, client: TemiClient, archives: Path, rng: random.Random) -> float:
    job_id = upload(client, _LARGE, archives)
    wait_until(lambda: job_row(site.runtime, job_id).status != "queued", "it runs")
    time.sleep(rng.uniform(0.0, 2.5))
    started = time.monotonic()
    try:
        client.cancel(job_id)
    except ApiError as error:
        if error.code == "job_finished":  # it was quicker
            return _cancel_running(site, client, archives, rng)
        raise
    wait_until(lambda: job_row(site.runtime, job_id).status == "cancelled", "it has ended")
    took = time.monotonic() - started
    assert client.dataset(job_row(site.runtime, job_id).dataset_id).status != "ready"
    return took


def _cancel_queued(site: Site, client: TemiClient, archives: Path, count: int) -> list[float]:
    """Behind a job that keeps the only worker busy."""
    (worker,) = site.workers
    blocking = upload(client, _LARGE, archives)
    wait_until(lambda: worker.jobs(), "the worker is busy")
    for process in worker.jobs():
        process.suspend()
    waits = []
    for _ in range(count):
        job_id = upload(client, 0, archives)
        started = time.monotonic()
        assert client.cancel(job_id).status == "cancelled"
        waits.append(time.monotonic() - started)
    client.cancel(blocking)
    return waits
