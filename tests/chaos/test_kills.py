"""Kills of any process at any time lose nothing and repeat nothing."""

import random
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.core.platform.tables import Clustering, Job, ModelVersion
from tests.chaos.conftest import StartSite
from tests.chaos.killing import kill_at_random
from tests.chaos.profile import Profile
from tests.chaos.site import ANY_CRASHES, SHORT_TIMES, Site
from tests.chaos.work import (
    ALL_JOBS_SECONDS,
    KINDS,
    Uploads,
    cluster,
    clustering_bits,
    count_open,
    job_row,
    tally,
    undisturbed,
    upload,
    wait_for_all_jobs,
)
from tests.promises import Promises
from tests.waiting import wait_until

_STEPS = 60
_JOBS_A_KILL = 5  # an upper limit: some end before they are killed
_AHEAD = 3  # kills that may precede their jobs


def test_ingest_jobs_survive_kills(
    start_any_site: StartSite,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    with start_any_site(times=SHORT_TIMES, max_crashes=ANY_CRASHES) as site:
        jobs, bits = undisturbed(site, archives, range(KINDS))
        kinds = (rng.randrange(KINDS) for _ in count())
        with Uploads(site, archives, kinds, least=profile.ingest_jobs) as uploads:

            def spread(killed: int) -> None:
                """Spreads the kills over all jobs: else the first ones would get them all."""
                ended = killed * profile.ingest_jobs // profile.ingest_kills - _AHEAD
                wait_until(
                    lambda: uploads.count_ended() >= ended,
                    "more jobs have ended",
                    ALL_JOBS_SECONDS,
                )

            killed = kill_at_random(site, rng, profile.ingest_kills, (0.1, 1.2), spread)
            uploads.finish()
        found = tally(site.runtime, jobs | uploads.jobs, bits)
        promises.keep(
            f"nothing lost, nothing duplicated ({site.runtime.db.engine.name}, ingest)",
            f"0, 0, the same bits; {profile.ingest_kills} kills, {profile.ingest_jobs} jobs",
            f"{found}; {killed.total()} kills ({_describe(killed)}), {len(uploads.jobs)} jobs, "
            f"{_hit(site)} of them hit",
            kept=found.clean and len(uploads.jobs) >= profile.ingest_jobs,
        )


@pytest.mark.usefixtures("only_in_full")
def test_training_survives_kills(
    start_any_site: StartSite,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    with (
        start_any_site(times=SHORT_TIMES, max_crashes=ANY_CRASHES) as site,
        site.client() as client,
    ):
        ingest = client.wait(upload(client, 0, archives))
        dataset_id = job_row(site.runtime, ingest.id).dataset_id
        reference = client.wait(cluster(client, dataset_id, "calm", steps=_STEPS)).id
        jobs: list[str] = []
        most = profile.cluster_jobs + _JOBS_A_KILL * profile.cluster_kills

        def keep_busy(_killed: int) -> None:
            """Waits until each worker has a job, on any machine."""
            while len(jobs) < profile.cluster_jobs or count_open(site.runtime) < len(site.workers):
                assert len(jobs) < most, f"{len(jobs)} jobs were too few to be killed at"
                name = f"disturbed-{len(jobs)}"
                jobs.append(cluster(client, dataset_id, name, steps=_STEPS))

        pause = _seconds_of(site, reference)  # kills at any time of a job
        kills = profile.cluster_kills
        killed = kill_at_random(site, rng, kills, (0.1 * pause, 0.7 * pause), keep_busy)
        wait_for_all_jobs(site)
        lost = [i for i in jobs if job_row(site.runtime, i).status != "succeeded"]
        bits = clustering_bits(site.runtime, reference)
        different = [i for i in jobs if clustering_bits(site.runtime, i) != bits]
        duplicated = _made(site) - len(jobs) - 1
        promises.keep(
            f"nothing lost, nothing duplicated ({site.runtime.db.engine.name}, training)",
            f"0, 0, the same bits; {profile.cluster_kills} kills",
            f"{len(lost)} lost, {duplicated} duplicated, {len(different)} different; "
            f"{killed.total()} kills ({_describe(killed)}), {len(jobs)} jobs",
            kept=not lost and not different and duplicated == 0,
        )


def _seconds_of(site: Site, job_id: str) -> float:
    job = job_row(site.runtime, job_id)
    assert job.started_at is not None
    assert job.finished_at is not None
    return job.finished_at - job.started_at


def _hit(site: Site) -> int:
    """Returns the number of jobs with more than one attempt."""
    with site.runtime.db.read() as session:
        return session.scalar(select(func.count()).select_from(Job).where(Job.fence > 1)) or 0


def _made(site: Site) -> int:
    """Returns the number of clusterings, which is that of model versions."""
    with site.runtime.db.read() as session:
        clusterings = session.scalar(select(func.count()).select_from(Clustering)) or 0
        versions = session.scalar(select(func.count()).select_from(ModelVersion)) or 0
    assert clusterings == versions
    return clusterings


def _describe(killed: dict[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(killed.items()))
