"""A rolling restart of all processes causes no failed request."""

import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core.platform.tables import ModelVersion
from temi_client import TemiClient
from tests.chaos.conftest import StartSite
from tests.chaos.site import Member, Site
from tests.chaos.users import UPLOAD_SECONDS, SlowUser, Users
from tests.chaos.work import (
    KINDS,
    archive,
    cluster,
    dataset_bits,
    job_row,
    undisturbed,
    wait_for_all_jobs,
)
from tests.images import ZIP
from tests.promises import Promises, Row, longest
from tests.waiting import wait_until

_MODEL = "rolling"
_ROUNDING = 0.001
_STREAM_SECONDS = 5.0  # it polls every half second, on a busy machine


@pytest.mark.usefixtures("only_in_full")
def test_rolling_restart(start_any_site: StartSite, archives: Path, promises: Promises) -> None:
    slow, streams = [], []
    body = archive(0, archives).read_bytes()
    with start_any_site(apis=2) as site:
        jobs, bits = undisturbed(site, archives, [0])
        _serve(site, job_row(site.runtime, *jobs).dataset_id)
        with Users(site, body, _MODEL) as users:
            for number, api in enumerate(site.apis):
                with SlowUser(site.urls[number], body) as user:
                    time.sleep(UPLOAD_SECONDS / 4)
                    streams.append(_seconds_of_a_stream(site, number, archives))
                _wait_for_successor(site, api)
                slow.append(user.status)
            for worker in site.workers:
                worker.send(signal.SIGTERM)
                _wait_for_successor(site, worker)
        wait_for_all_jobs(site)
        rows = [job_row(site.runtime, job_id) for job_id in users.jobs]
        lost = [
            row
            for row in rows
            if row.status != "succeeded" or dataset_bits(site.runtime, row.dataset_id) != bits[0]
        ]
        crashed = [row for row in rows if row.crashes]
        engine = site.runtime.db.engine.name
    cluster_id, probability = users.predictions[0]
    # the last bits may differ: a batch of another size may be rounded differently
    different = [
        found
        for found in users.predictions
        if found[0] != cluster_id or abs(found[1] - probability) > _ROUNDING
    ]
    promises.keep_all(
        Row(
            f"rolling restart ({engine})",
            "0 requests fail, 0 jobs lost or counted as crashed; every process once",
            f"{len(users.failed)} of {users.answered} failed ({users.retried} connections tried "
            f"again), {len(lost)} lost, {len(crashed)} counted as crashed of {len(rows)} jobs"
            + "".join(f"; {failure}" for failure in users.failed[:3]),
            not (users.failed or lost or crashed),
        ),
        Row(
            f"predictions meanwhile ({engine})",
            "the same cluster and probability every time",
            f"{len(different)} of {len(users.predictions)} different",
            not different,
        ),
        Row(
            f"an API that is told to stop ({engine})",
            f"answers an upload of {UPLOAD_SECONDS:.0f} s; streams end within "
            f"{_STREAM_SECONDS:.0f} s",
            f"{slow.count(202)} of {len(slow)} uploads answered; streams ended after "
            f"{longest(streams)}",
            set(slow) == {202} and max(streams) <= _STREAM_SECONDS,
        ),
    )


def _serve(site: Site, dataset_id: str) -> None:
    """Returns a model that every API process has loaded, and new ones preload."""
    with site.client() as client:
        client.wait(cluster(client, dataset_id, _MODEL, steps=5))
    for url in site.urls:
        with TemiClient(url, retries=20) as client:
            image = next(iter(client.images(dataset_id)))
            client.predict_images(_MODEL, [image.id])
    wait_until(lambda: _was_served(site), "the model is noted as in use")


def _was_served(site: Site) -> bool:
    with site.runtime.db.read() as session:
        return session.scalar(select(ModelVersion.served_at)) is not None


def _seconds_of_a_stream(site: Site, number: int, archives: Path) -> float:
    """Returns the seconds from the signal to stop until the stream of a running job has ended."""
    with site.http(number) as http:
        body = archive(KINDS - 1, archives).read_bytes()
        job_id = http.post("/v1/datasets?name=watched", content=body, headers=ZIP).json()["id"]
        with http.stream("GET", f"/v1/jobs/{job_id}/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            site.apis[number].send(signal.SIGTERM)
            started = time.monotonic()
            for _ in lines:
                pass
            return time.monotonic() - started


def _wait_for_successor(site: Site, member: Member) -> None:
    before = member.pid
    wait_until(lambda: member.pid != before or member.dead, "it stops")
    wait_until(lambda: not member.dead, "it is started again")
    site.wait_until_up()
