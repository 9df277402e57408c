"""Notifications over the broker, and what happens without one."""

from collections.abc import Iterator

import pytest
from celery import Celery

from app.core.jobs.queue import RUN_JOB, check_broker, make_celery, publish_notification
from app.core.platform.settings import Settings
from tests.conftest import MakeSettings
from tests.servers import free_port
from tests.waiting import LONG_SECONDS


@pytest.fixture(params=["filesystem", "redis"])
def broker(request: pytest.FixtureRequest, make_settings: MakeSettings) -> Settings:
    changes = {}
    if request.param == "redis":
        changes["broker_url"] = request.getfixturevalue("redis_url")
    return make_settings(**changes)


@pytest.fixture
def celery(broker: Settings) -> Iterator[Celery]:
    yield from _celery(broker)


@pytest.fixture
def dead_celery(make_settings: MakeSettings) -> Iterator[Celery]:
    yield from _celery(make_settings(broker_url=f"redis://127.0.0.1:{free_port()}/0"))


def _celery(settings: Settings) -> Iterator[Celery]:
    celery = make_celery(settings)
    yield celery
    celery.close()


def test_a_notification_is_delivered(celery: Celery) -> None:
    for job_id in ("job_1", "job_2"):
        publish_notification(celery, job_id, "gpu")
    received = []
    with celery.connection_for_read() as connection:
        queue = connection.SimpleQueue("temi.gpu")
        for _ in range(2):
            message = queue.get(timeout=LONG_SECONDS)
            received.append((message.headers["task"], message.payload[0]))
            assert message.headers["expires"] is None  # the worker's clock may be an hour off
            message.ack()
        queue.close()
    assert sorted(received) == [(RUN_JOB, ["job_1"]), (RUN_JOB, ["job_2"])]


def test_the_check_of_a_reachable_broker(broker: Settings) -> None:
    check_broker(broker)


def test_an_unreachable_broker_raises_nothing(dead_celery: Celery) -> None:
    publish_notification(dead_celery, "job_1", "cpu")  # raises nothing


def test_the_check_of_an_unreachable_broker(make_settings: MakeSettings) -> None:
    settings = make_settings(broker_url=f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(Exception, match="refused"):
        check_broker(settings)


def test_a_missing_broker_folder_raises_nothing(settings: Settings) -> None:
    celery = make_celery(settings)
    messages = settings.broker_dir / "messages"
    messages.rmdir()
    messages.write_text("in the way")
    publish_notification(celery, "job_1", "cpu")
    celery.close()


@pytest.mark.parametrize(
    ("takes", "queues"),
    [
        (("cpu", "gpu"), ["temi.cpu", "temi.gpu"]),
        (("cpu",), ["temi.cpu"]),
        (("gpu",), ["temi.gpu"]),
    ],
)
def test_a_worker_consumes_the_queues_of_its_resources(
    make_settings: MakeSettings, takes: tuple[str, ...], queues: list[str]
) -> None:
    celery = make_celery(make_settings(worker_takes=takes))
    assert sorted(celery.amqp.queues.consume_from) == queues
    celery.close()


def test_celery_stores_no_results(settings: Settings) -> None:
    conf = make_celery(settings).conf
    assert conf.task_ignore_result
    assert conf.result_backend is None
    assert conf.worker_prefetch_multiplier == 1
