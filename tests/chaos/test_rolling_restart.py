"""Every process is replaced, one after the other, and nobody who uses the service notices."""

import itertools
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.report import Promises, Row, longest
from tests.chaos.site import Member, Site, wait_until
from tests.chaos.work import KINDS, archive, count_open, dataset_bits, job_row, undisturbed

_UPLOAD_SECONDS = 6.0
_STREAM_SECONDS = 5.0  # a look every half second, on a machine that is busy


@dataclass
class Users:
    """They take turns with the API processes, and ask the next one if one has gone away."""

    site: Site
    archives: Path
    answered: int = 0
    retried: int = 0
    jobs: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Users":
        self._thread = threading.Thread(target=self._run, name="users")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        body = archive(0, self.archives).read_bytes()
        with httpx.Client(timeout=60) as http:
            for turn in itertools.count():
                if self._stopping.wait(0.2):
                    return
                if turn % 40 == 0:
                    answer = self._ask(http, turn, "POST", "/v1/datasets?name=rolling", body)
                    self.jobs += [answer.json()["id"]] if answer is not None else []
                elif self.jobs and turn % 2:
                    self._ask(http, turn, "GET", f"/v1/jobs/{self.jobs[-1]}")
                else:
                    self._ask(http, turn, "GET", "/v1/jobs?limit=5")

    def _ask(
        self, http: httpx.Client, turn: int, method: str, path: str, body: bytes | None = None
    ) -> httpx.Response | None:
        headers = {"Idempotency-Key": str(uuid4())} if body else {}
        for attempt in range(100):
            url = self.site.urls[(turn + attempt) % len(self.site.urls)]
            try:
                answer = http.request(method, f"{url}{path}", content=body, headers=headers)
            except httpx.TransportError:
                self.retried += 1
                time.sleep(0.1)
                continue
            self.answered += 1
            if answer.is_success:
                return answer
            self.failed.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return None
        self.failed.append(f"{method} {path}: nobody answers")
        return None


@dataclass
class SlowUser:
    """Sends a request that takes longer than the API would need to stop."""

    url: str
    body: bytes
    status: int | None = None

    def __enter__(self) -> "SlowUser":
        self._thread = threading.Thread(target=self._send)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _send(self) -> None:
        headers = {"Content-Length": str(len(self.body))}
        try:
            answer = httpx.post(
                f"{self.url}/v1/datasets?name=slow", content=self._drops(), headers=headers
            )
            self.status = answer.status_code
        except httpx.TransportError:
            self.status = 0

    def _drops(self) -> Iterator[bytes]:
        size = len(self.body) // 10 + 1
        for start in range(0, len(self.body), size):
            time.sleep(_UPLOAD_SECONDS / 10)
            yield self.body[start : start + size]


@pytest.mark.timeout(900)
def test_rolling_restart(
    start_some_site: StartSite, archives: Path, profile: Profile, promises: Promises
) -> None:
    slow, streams = [], []
    with start_some_site(apis=2) as site:
        _, bits = undisturbed(site, archives, [0])
        with Users(site, archives) as users:
            for _ in range(profile.rolls):
                for number, api in enumerate(site.apis):
                    with SlowUser(site.urls[number], archive(0, archives).read_bytes()) as user:
                        time.sleep(_UPLOAD_SECONDS / 4)
                        streams.append(_seconds_of_a_stream(site, number, archives))
                    _wait_for_successor(site, api)
                    slow.append(user.status)
                for worker in site.workers:
                    worker.send(signal.SIGTERM)
                    _wait_for_successor(site, worker)
        wait_until(lambda: count_open(site.runtime) == 0, "all jobs have ended", 300)
        rows = [job_row(site.runtime, job_id) for job_id in users.jobs]
        lost = [
            row
            for row in rows
            if row.status != "succeeded" or dataset_bits(site.runtime, row.dataset_id) != bits[0]
        ]
        blamed = [row for row in rows if row.crashes]
        engine = site.runtime.db.engine.name
    promises.keep_all(
        Row(
            f"rolling restart ({engine})",
            f"0 requests fail, 0 jobs lost or blamed; every process {profile.rolls} x",
            f"{len(users.failed)} of {users.answered} failed ({users.retried} connections tried "
            f"again), {len(lost)} lost, {len(blamed)} blamed of {len(rows)} jobs",
            not (users.failed or lost or blamed),
        ),
        Row(
            f"an API that is told to stop ({engine})",
            f"answers an upload of {_UPLOAD_SECONDS:.0f} s; streams end within "
            f"{_STREAM_SECONDS:.0f} s",
            f"{slow.count(202)} of {len(slow)} uploads answered; streams ended after "
            f"{longest(streams)}",
            set(slow) == {202} and max(streams) <= _STREAM_SECONDS,
        ),
    )


def _seconds_of_a_stream(site: Site, number: int, archives: Path) -> float:
    """From the order to stop until the stream of a job that goes on has ended."""
    url = site.urls[number]
    with httpx.Client(base_url=url, timeout=60) as http:
        body = archive(KINDS - 1, archives).read_bytes()
        job_id = http.post("/v1/datasets?name=watched", content=body).json()["id"]
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
    wait_until(lambda: member.pid != before or member.dead, "it stops", 60)
    wait_until(lambda: not member.dead, "it is started again", 60)
    site.wait_until_up()
