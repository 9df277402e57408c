"""Watches a job: server-sent events, resumed after interruptions, or polling."""

import time
from collections.abc import Callable, Iterator

import httpx
from httpx_sse import EventSource

from temi_client.errors import ApiError
from temi_client.models.jobs import Job
from temi_client.transport import api_error

# The service sends keep-alive comments more often than this.
_READ_TIMEOUT_SECONDS = 60.0
_RECONNECT_SECONDS = 1.0
_MAX_EMPTY_STREAMS = 3


class JobWatcher:
    """Yields the states of a job that the service reports, until the final one."""

    def __init__(
        self, client: httpx.Client, job_id: str, fetch: Callable[[], Job], poll_seconds: float
    ) -> None:
        self._client = client
        self._path = f"/v1/jobs/{job_id}/events"
        self._fetch = fetch
        self._poll_seconds = poll_seconds
        self._last_id: str | None = None

    def states(self) -> Iterator[Job]:
        empty_streams = 0
        while empty_streams < _MAX_EMPTY_STREAMS:
            empty_streams += 1
            try:
                for job in self._stream():
                    empty_streams = 0
                    yield job
                    if job.finished:
                        return
            except httpx.TransportError:
                pass  # the service restarts, or a proxy cut the stream
            except ApiError:
                break  # no stream is available; if the job does not exist, polling raises
            time.sleep(min(_RECONNECT_SECONDS, self._poll_seconds))
        yield from self._poll()

    def _stream(self) -> Iterator[Job]:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        timeout = httpx.Timeout(10.0, read=_READ_TIMEOUT_SECONDS)
        with self._client.stream("GET", self._path, headers=headers, timeout=timeout) as response:
            if response.status_code == httpx.codes.NO_CONTENT:  # there are no more events
                yield self._fetch()
                return
            if not response.is_success:
                response.read()
                raise api_error(response)
            for event in EventSource(response).iter_sse():
                self._last_id = event.id or self._last_id
                if event.data:  # a keep-alive comment arrives as an event without data
                    yield Job.model_validate_json(event.data)

    def _poll(self) -> Iterator[Job]:
        seen: Job | None = None
        while True:
            job = self._fetch()
            if job != seen:
                yield job
            if job.finished:
                return
            seen = job
            time.sleep(self._poll_seconds)
