"""Restarts of PostgreSQL lose nothing; meanwhile the API answers 503 with Retry-After."""

import random
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.site import ANY_CRASHES, SHORT_TIMES
from tests.chaos.work import KINDS, Uploads, tally, undisturbed
from tests.promises import Promises, Row, longest
from tests.servers import Server, frozen
from tests.waiting import LONG_SECONDS, wait_until

_BACK_SECONDS = 10.0
_STATEMENT_SECONDS = 2.0
_GIVE_UP_SECONDS = _STATEMENT_SECONDS + 13.0  # 5 for the network, 5 to reconnect, and a margin


@dataclass
class Prober:
    """A client that polls the service."""

    url: str
    answers: list[tuple[float, int]] = field(default_factory=list)  # time of the request, status
    bad: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Prober":
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def back_after(self, moment: float) -> bool:
        return any(asked > moment and status == 200 for asked, status in list(self.answers))

    def seconds_until_back(self, moment: float) -> float:
        wait_until(lambda: self.back_after(moment), "the API is back")
        return min(a for a, status in self.answers if a > moment and status == 200) - moment

    def _run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=LONG_SECONDS) as http:
            while not self._stopping.wait(0.05):
                asked = time.monotonic()
                answer = http.get("/v1/jobs?limit=1")
                self.answers.append((asked, answer.status_code))
                if answer.status_code != 200 and not _is_promised(answer):
                    self.bad.append(f"{answer.status_code}: {answer.text[:200]}")


def _is_promised(answer: httpx.Response) -> bool:
    return (
        answer.status_code == 503
        and "Retry-After" in answer.headers
        and answer.json()["code"] == "database_unavailable"
    )


def test_immediate_restarts(
    start_site: StartSite,
    own_postgres: Server,
    archives: Path,
    profile: Profile,
    rng: random.Random,
    promises: Promises,
) -> None:
    url = f"{own_postgres.url}/postgres"
    # some leases are lost with the database
    with start_site(database_url=url, times=SHORT_TIMES, max_crashes=ANY_CRASHES) as site:
        jobs, bits = undisturbed(site, archives, range(KINDS))
        kinds = (rng.randrange(KINDS) for _ in count())
        back = []
        with (
            Uploads(site, archives, kinds, least=profile.database_restarts) as uploads,
            Prober(site.urls[0]) as prober,
        ):
            for _ in range(profile.database_restarts):
                time.sleep(rng.uniform(1.0, 3.0))
                own_postgres.stop()
                time.sleep(rng.uniform(0.0, 1.5))
                own_postgres.start()
                back.append(prober.seconds_until_back(time.monotonic()))
            uploads.finish()
        found = tally(site.runtime, jobs | uploads.jobs, bits)
    refused = sum(status == 503 for _, status in prober.answers)
    promises.keep_all(
        Row(
            "database restart",
            f"0 lost; {profile.database_restarts} immediate restarts",
            f"{found}; {len(uploads.jobs)} jobs",
            found.clean,
        ),
        Row(
            "database restart: the API",
            f"503 with Retry-After, back within {_BACK_SECONDS:.0f} s",
            f"{refused} x 503, {len(prober.bad)} other errors, back within {longest(back)}",
            not prober.bad and profile.in_time(max(back), _BACK_SECONDS),
        ),
    )


@pytest.mark.usefixtures("only_in_full")
def test_a_frozen_server_times_out(
    start_site: StartSite, own_postgres: Server, promises: Promises
) -> None:
    """The kernel of a frozen server still acknowledges packets; only a client timeout helps."""
    url = f"{own_postgres.url}/postgres"
    with (
        start_site(database_url=url, database_seconds=_STATEMENT_SECONDS, workers=1) as site,
        site.http() as http,
    ):
        assert http.get("/v1/jobs").status_code == 200
        with frozen(own_postgres.url):
            started = time.monotonic()
            answer = http.get("/v1/jobs")
            waited = time.monotonic() - started
        thawed = time.monotonic()
        wait_until(lambda: http.get("/v1/jobs").status_code == 200, "the API is back")
        back = time.monotonic() - thawed
    promises.keep(
        "frozen database",
        f"503 within {_GIVE_UP_SECONDS:.0f} s ({_STATEMENT_SECONDS:.0f} s for a statement)",
        f"{answer.status_code} after {waited:.1f} s, back within {back:.1f} s",
        kept=_is_promised(answer) and waited <= _GIVE_UP_SECONDS and back <= _BACK_SECONDS,
    )
