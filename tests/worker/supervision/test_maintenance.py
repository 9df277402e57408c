"""Notifications and webhooks do not wait for each other."""

import socket
import threading

from pydantic import SecretStr
from sqlalchemy import select, update

from app.core.jobs.lifecycle import cancel
from app.core.platform.tables import Job, WebhookDelivery
from app.core.runtime import Runtime
from tests.conftest import MakeSettings
from tests.images import jpeg_bytes, zip_of
from tests.waiting import join, wait_until
from tests.worker.conftest import AddIngest
from worker.supervision.maintenance import start_republisher, start_webhook_sender


def test_a_webhook_receiver_that_hangs_does_not_delay_jobs(
    make_settings: MakeSettings, add_ingest: AddIngest
) -> None:
    deaf = socket.create_server(("127.0.0.1", 0))  # accepts connections and never answers
    url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
    secret = SecretStr("whsec_" + "A" * 32)
    runtime = Runtime(make_settings(webhook_hosts=("127.0.0.1",), webhook_secret=secret))
    archive = zip_of({"a.jpg": jpeg_bytes()})
    ended, waiting = (add_ingest(runtime, archive) for _ in range(2))
    with runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == ended.id).values(webhook_url=url))
        session.execute(update(Job).where(Job.id == waiting.id).values(notify_at=1e12))
        cancel(session, "default", ended.id)

    def attempts() -> int:
        with runtime.db.read() as session:
            return session.scalars(select(WebhookDelivery.attempts)).one()

    def notifications() -> int:
        with runtime.db.read() as session:
            return session.get_one(Job, waiting.id).notifications

    stopping = threading.Event()
    threads = [start(runtime, stopping) for start in (start_webhook_sender, start_republisher)]
    wait_until(lambda: attempts() == 1)  # from now on the sender waits for a response
    with runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == waiting.id).values(notify_at=0.0))
    wait_until(lambda: notifications() == 1)
    assert attempts() == 1
    stopping.set()
    deaf.close()
    join(*threads)
    runtime.db.dispose()
    runtime.celery.close()
