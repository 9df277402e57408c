"""Cancelled jobs end within seconds in every stage, with the default settings."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from temi_client import ApiError, TemiClient
from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.site import Site
from tests.chaos.work import KINDS, cluster, job_row, upload
from tests.freezing import suspend_between_writes
from tests.promises import Promises, Row, longest
from tests.waiting import wait_until

_LARGE = KINDS - 1
_STEPS = 100_000  # they do not end within the test
_QUEUED_SECONDS, _RUNNING_SECONDS = 1.0, 15.0


def test_cancelling_at_any_point(
    start_site: StartSite,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    with start_site(workers=1, times={}) as site, site.client() as client:
        ingest = client.wait(upload(client, 0, archives))
        dataset_id = job_row(site.runtime, ingest.id).dataset_id
        kinds: list[tuple[Callable[[], str], float]] = [
            (lambda: upload(client, _LARGE, archives), 2.5),
            (lambda: cluster(client, dataset_id, "cancelled", steps=_STEPS), 10.0),
        ]
        running = [
            _cancel_running(site, client, rng, *kinds[turn % 2])
            for turn in range(profile.running_cancels)
        ]
        queued = _cancel_queued(site, client, archives, profile.queued_cancels)
    promises.keep_all(
        Row(
            "cancel, running",
            f"<= {_RUNNING_SECONDS:.0f} s; {profile.running_cancels} at random points",
            f"{longest(running)}; {len(running)} jobs",
            profile.in_time(max(running), _RUNNING_SECONDS),
        ),
        Row(
            "cancel, queued",
            f"<= {_QUEUED_SECONDS:.0f} s; {profile.queued_cancels} jobs",
            f"{longest(queued)}; {len(queued)} jobs",
            profile.in_time(max(queued), _QUEUED_SECONDS),
        ),
    )


def _cancel_running(
    site: Site,
    client: TemiClient,
    rng: random.Random,
    create: Callable[[], str],
    latest: float,
) -> float:
    """Cancels up to `latest` seconds after the start; returns the seconds until the end."""
    job_id = create()
    wait_until(lambda: job_row(site.runtime, job_id).status != "queued", "it runs")
    time.sleep(rng.uniform(0.0, latest))
    started = time.monotonic()
    try:
        client.cancel(job_id)
    except ApiError as error:
        if error.code == "job_finished":  # it was quicker
            return _cancel_running(site, client, rng, create, latest)
        raise
    wait_until(lambda: job_row(site.runtime, job_id).status == "cancelled", "it has ended")
    took = time.monotonic() - started
    job = job_row(site.runtime, job_id)
    if job.kind == "ingest":
        assert client.dataset(job.dataset_id).status != "ready"
    else:
        assert job.result is None
    return took


def _cancel_queued(site: Site, client: TemiClient, archives: Path, count: int) -> list[float]:
    """Creates a job behind one that keeps the only worker busy."""
    (worker,) = site.workers
    blocking = upload(client, _LARGE, archives)
    wait_until(lambda: worker.jobs(), "the worker is busy")
    file = Path(site.runtime.db.engine.url.database or "")
    suspend_between_writes(worker.jobs(), file)
    waits = []
    for _ in range(count):
        job_id = upload(client, 0, archives)
        started = time.monotonic()
        assert client.cancel(job_id).status == "cancelled"
        waits.append(time.monotonic() - started)
    client.cancel(blocking)
    return waits
