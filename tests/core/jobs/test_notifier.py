"""Creating a job does not wait for the broker."""

import threading

import pytest

from app.core.jobs import notifications
from app.core.jobs.notifications import JobNotifier
from app.core.runtime import Runtime
from tests.conftest import MakeSettings
from tests.servers import frozen
from tests.waiting import LONG_SECONDS, wait_until


def test_notifications_are_sent_in_order() -> None:
    sent: list[str] = []
    third = threading.Event()

    def send(job_id: str, _kind: str) -> None:
        sent.append(job_id)
        if len(sent) == 3:
            third.set()

    notifier = JobNotifier(send)
    for number in range(3):
        notifier.notify(f"job_{number}", "cluster")
    assert third.wait(LONG_SECONDS)
    assert sent == ["job_0", "job_1", "job_2"]


def test_an_error_does_not_end_the_thread() -> None:
    second = threading.Event()

    def send(job_id: str, _kind: str) -> None:
        if job_id == "job_1":
            raise OSError("gone")
        second.set()

    notifier = JobNotifier(send)
    notifier.notify("job_1", "cluster")
    notifier.notify("job_2", "cluster")
    assert second.wait(LONG_SECONDS)


def test_a_broker_that_hangs_blocks_no_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "_MAX_QUEUED", 5)
    hanging, sent = threading.Event(), []

    def send(job_id: str, _kind: str) -> None:
        hanging.wait(LONG_SECONDS)
        sent.append(job_id)

    notifier = JobNotifier(send)
    for number in range(100):
        notifier.notify(f"job_{number}", "cluster")
    assert sent == []  # no caller waits for the first one
    hanging.set()
    wait_until(lambda: len(sent) >= 5, "the queue is sent")
    assert 5 <= len(sent) <= 6  # the one that hung, and the queue


def test_a_frozen_redis(make_settings: MakeSettings, redis_url: str) -> None:
    runtime = Runtime(make_settings(broker_url=redis_url))
    with frozen(redis_url):
        runtime.notifier.notify("job_1", "cluster")  # returns although nothing can be sent
    with runtime.celery.connection_for_read() as connection:
        waiting = connection.SimpleQueue("temi.gpu")
        message = waiting.get(timeout=LONG_SECONDS)
        message.ack()
        assert message.payload[0] == ["job_1"]
        waiting.close()
    runtime.celery.close()
