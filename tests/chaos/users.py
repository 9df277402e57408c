"""Clients that use the service while it is restarted."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

import httpx

from tests.chaos.site import Site
from tests.images import ZIP, png_bytes
from tests.waiting import LONG_SECONDS

UPLOAD_SECONDS = 4.0
_PICTURE = {"files": ("new.png", png_bytes("teal"))}


@dataclass
class Users:
    """One uploads and reads, one predicts. They alternate between the API processes that are ready,
    which are checked twice a second, and try the next one if a process has gone away."""

    site: Site
    upload: bytes
    model: str
    answered: int = 0
    retried: int = 0
    jobs: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    predictions: list[tuple[int, float]] = field(default_factory=list)
    _ready: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self._ready = self.site.urls
        each: list[Callable[[httpx.Client, int], None]] = [self._upload_or_look, self._predict]
        self._threads = [threading.Thread(target=self._repeat, args=(act,)) for act in each]
        self._threads.append(threading.Thread(target=self._balance))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, act: Callable[[httpx.Client, int], None]) -> None:
        with httpx.Client(timeout=LONG_SECONDS) as http:
            for turn in itertools.count():
                if self._stopping.wait(0.2):
                    return
                act(http, turn)

    def _balance(self) -> None:
        while not self._stopping.wait(0.5):
            found = [url for url in self.site.urls if self.site.is_up(url)]
            self._ready = found or self._ready

    def _upload_or_look(self, http: httpx.Client, turn: int) -> None:
        if turn % 40 == 0:
            headers = {"Idempotency-Key": str(uuid4())} | ZIP
            path = "/v1/datasets?name=rolling"
            answer = self._ask(http, turn, "POST", path, content=self.upload, headers=headers)
            self.jobs += [answer.json()["id"]] if answer is not None else []
        elif self.jobs and turn % 2:
            self._ask(http, turn, "GET", f"/v1/jobs/{self.jobs[-1]}")
        else:
            self._ask(http, turn, "GET", "/v1/jobs?limit=5")

    def _predict(self, http: httpx.Client, turn: int) -> None:
        answer = self._ask(http, turn, "POST", f"/v1/models/{self.model}:predict", files=_PICTURE)
        if answer is not None:
            (found,) = answer.json()["data"]
            self.predictions.append((found["cluster_id"], found["probability"]))

    def _ask(
        self, http: httpx.Client, turn: int, method: str, path: str, **content: Any
    ) -> httpx.Response | None:
        for attempt in range(100):
            ready = self._ready
            url = ready[(turn + attempt) % len(ready)]
            try:
                answer = http.request(method, f"{url}{path}", **content)
            except httpx.TransportError:
                self._count(retried=1)
                time.sleep(0.1)
                continue
            self._count(answered=1)
            if answer.is_success:
                return answer
            self.failed.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return None
        self.failed.append(f"{method} {path}: no API process answers")
        return None

    def _count(self, *, answered: int = 0, retried: int = 0) -> None:
        with self._lock:
            self.answered += answered
            self.retried += retried


@dataclass
class SlowUser:
    """Sends a request that takes longer than the API would need to stop."""

    url: str
    body: bytes
    status: int | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._send)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _send(self) -> None:
        headers = {"Content-Length": str(len(self.body))} | ZIP
        try:
            answer = httpx.post(
                f"{self.url}/v1/datasets?name=slow",
                content=self._drops(),
                headers=headers,
                timeout=LONG_SECONDS,
            )
            self.status = answer.status_code
        except httpx.TransportError:
            self.status = 0

    def _drops(self) -> Iterator[bytes]:
        size = len(self.body) // 10 + 1
        for start in range(0, len(self.body), size):
            time.sleep(UPLOAD_SECONDS / 10)
            yield self.body[start : start + size]
