"""Nothing is lost and nothing is done twice, whoever is killed and whenever."""

import random
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.core.tables import Clustering, Job, ModelVersion
from tests.chaos.conftest import StartSite
from tests.chaos.killing import kill_at_random
from tests.chaos.profile import Profile
from tests.chaos.site import Site, wait_until
from tests.chaos.work import (
    KINDS,
    Uploads,
    cluster,
    clustering_bits,
    count_open,
    job_row,
    tally,
    undisturbed,
    upload,
)
from tests.promises import Promises

_PATIENCE = 1_000  # crashes: random kills may well hit one job three times in a row
_STEPS = 60
_AHEAD = 3  # kills that may come before the jobs they are meant for


@pytest.mark.timeout(1200)
def test_ingest_jobs_survive_kills(
    start_any_site: StartSite,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    with start_any_site(max_crashes=_PATIENCE) as site:
        jobs, bits = undisturbed(site, archives, range(KINDS))
        kinds = (rng.randrange(KINDS) for _ in count())
        with Uploads(site, archives, kinds, least=profile.ingest_jobs) as uploads:

            def spread(killed: int) -> None:
                """Over all jobs: without a break the first ones would take all the kills."""
                ended = killed * profile.ingest_jobs // profile.ingest_kills - _AHEAD
                wait_until(lambda: uploads.count_ended() >= ended, "more jobs have ended", 300)

            killed = kill_at_random(site, rng, profile.ingest_kills, (0.1, 1.2), spread)
            uploads.finish()
        found = tally(site.runtime, jobs | uploads.jobs, bits)
        promises.keep(
            f"nothing lost, nothing doubled ({site.runtime.db.engine.name}, ingest)",
            f"0, 0, the same bits; {profile.ingest_kills} kills, {profile.ingest_jobs} jobs",
            f"{found}; {killed.total()} kills ({_told(killed)}), {len(uploads.jobs)} jobs, "
            f"{_hit(site)} of them hit",
            kept=found.clean and len(uploads.jobs) >= profile.ingest_jobs,
        )


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("only_in_full")
def test_training_survives_kills(
    start_any_site: StartSite,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    with start_any_site(max_crashes=_PATIENCE) as site, site.client() as client:
        ingest = client.wait(upload(client, 0, archives))
        dataset_id = job_row(site.runtime, ingest.id).dataset_id
        reference = client.wait(cluster(client, dataset_id, "calm", steps=_STEPS)).id
        jobs: list[str] = []

        def keep_busy(_killed: int) -> None:
            while len(jobs) < profile.cluster_jobs or count_open(site.runtime) == 0:
                name = f"disturbed-{len(jobs)}"
                jobs.append(cluster(client, dataset_id, name, steps=_STEPS))

        killed = kill_at_random(site, rng, profile.cluster_kills, (3.0, 12.0), keep_busy)
        wait_until(lambda: count_open(site.runtime) == 0, "all jobs have ended", 600)
        lost = [i for i in jobs if job_row(site.runtime, i).status != "succeeded"]
        bits = clustering_bits(site.runtime, reference)
        different = [i for i in jobs if clustering_bits(site.runtime, i) != bits]
        doubled = _made(site) - len(jobs) - 1
        promises.keep(
            f"nothing lost, nothing doubled ({site.runtime.db.engine.name}, training)",
            f"0, 0, the same bits; {profile.cluster_kills} kills",
            f"{len(lost)} lost, {doubled} doubled, {len(different)} different; "
            f"{killed.total()} kills ({_told(killed)}), {len(jobs)} jobs",
            kept=not lost and not different and doubled == 0,
        )


def _hit(site: Site) -> int:
    """Jobs that took more than one attempt."""
    with site.runtime.db.read() as session:
        return session.scalar(select(func.count()).select_from(Job).where(Job.fence > 1)) or 0


def _made(site: Site) -> int:
    """Clusterings, and as many versions of models."""
    with site.runtime.db.read() as session:
        clusterings = session.scalar(select(func.count()).select_from(Clustering)) or 0
        versions = session.scalar(select(func.count()).select_from(ModelVersion)) or 0
    assert clusterings == versions
    return clusterings


def _told(killed: dict[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(killed.items()))
