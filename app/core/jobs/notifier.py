"""Messages of the API: sent beside the request, which never waits for the broker."""

import queue
import threading
from collections.abc import Callable

import structlog

_MOST_WAITING = 1_000  # while the broker does not answer; the sweeper sends what is dropped
log = structlog.get_logger()


class JobNotifier:
    """Rings for jobs from one thread of its own, in the order of their creation."""

    def __init__(self, send: Callable[[str, str], None]) -> None:
        self._send = send
        self._waiting: queue.Queue[tuple[str, str]] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def notify(self, job_id: str, kind: str) -> None:
        """Best effort, and at once: the job is committed, and a lost message costs seconds."""
        try:
            self._waiting.put_nowait((job_id, kind))
        except queue.Full:
            log.warning(
                "notification_not_sent", job_id=job_id, reason="too many wait for the broker"
            )
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="job-notifier", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            job_id, kind = self._waiting.get()
            try:
                self._send(job_id, kind)
            except Exception as error:  # noqa: BLE001 - the next message may get through
                log.warning("notification_not_sent", job_id=job_id, reason=str(error))
