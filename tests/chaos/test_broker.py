"""A broker that loses its data, dies or hangs loses no job."""

import random
import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import redis

from temi_client import TemiClient
from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.work import KINDS, Uploads, tally, undisturbed, upload
from tests.promises import Promises, Row, longest
from tests.servers import Server, frozen

_SMALL = range(KINDS - 1)
_LONGEST_REQUEST = 3.0  # a second for the broker, and a margin for a slow machine


def test_redis_may_die_forget_and_freeze(
    start_site: StartSite,
    own_redis: Server,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    with start_site(broker_url=own_redis.url) as site, site.client() as client:
        jobs, bits = undisturbed(site, archives, _SMALL)
        kinds = (rng.choice(_SMALL) for _ in count())
        with Uploads(site, archives, kinds, least=profile.broker_kills) as uploads:
            waited = _disturb(own_redis, profile, rng, lambda: jobs.update(_one(client, archives)))
            uploads.finish()
        found = tally(site.runtime, jobs | uploads.jobs, bits)
    promises.keep_all(
        Row(
            "broker loss harmless",
            f"0 lost; {profile.broker_kills} kills without AOF, FLUSHALL, "
            f"{profile.broker_freezes} freezes",
            f"{found}; {len(uploads.jobs)} jobs",
            found.clean,
        ),
        Row(
            "a frozen broker delays no request",
            f"a job is taken within {_LONGEST_REQUEST:.0f} s",
            longest(waited),
            profile.in_time(max(waited), _LONGEST_REQUEST),
        ),
    )


def _disturb(
    broker: Server, profile: Profile, rng: random.Random, create_job: Callable[[], None]
) -> list[float]:
    """Returns the seconds to create a job while the broker is frozen, for each try."""
    for _ in range(profile.broker_kills):
        time.sleep(rng.uniform(0.2, 1.5))
        broker.stop(signal.SIGKILL)
        time.sleep(rng.uniform(0.0, 1.0))
        broker.start()
    with redis.Redis.from_url(broker.url) as connection:
        connection.flushall()
    waited = []
    for _ in range(profile.broker_freezes):
        with frozen(broker.url):
            started = time.monotonic()
            create_job()
            waited.append(time.monotonic() - started)
            time.sleep(rng.uniform(1.0, 4.0))
    return waited


def _one(client: TemiClient, archives: Path) -> dict[str, int]:
    return {upload(client, 0, archives): 0}
