"""Webhooks against a real receiver, verified by the specification's own library."""

import base64
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select, update
from standardwebhooks import Webhook

from app.core.jobs.lifecycle import cancel, claim, finish
from app.core.jobs.webhooks import RETRY_SECONDS, check_webhook_url, send_due
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Job, JobLog, WebhookDelivery
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.waiting import LONG_SECONDS, wait_until

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


class Receiver:
    """Responds with the given statuses in turn, then always with the last one."""

    def __init__(self) -> None:
        self.statuses = [204]
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.answers_from = 1_000_000  # after this many requests it responds without waiting
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, dict(self.headers), body))
                if len(receiver.got) >= receiver.answers_from:
                    receiver.go_on.set()
                receiver.go_on.wait(LONG_SECONDS)
                statuses = receiver.statuses
                self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?token=x"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def _allowing(settings: Settings, *hosts: str) -> Settings:
    allowed = {"webhook_hosts": hosts, "webhook_secret": SecretStr(SECRET)}
    return settings.model_copy(update=allowed)


@pytest.fixture
def settings_with_hooks(any_settings: Settings) -> Settings:
    return _allowing(any_settings, "127.0.0.1")


def _end(runtime: Runtime, job: Job, url: str, status: str = "succeeded") -> None:
    error = {"code": "out_of_memory", "detail": "Too large."} if status == "failed" else None
    with runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == job.id).values(webhook_url=url))
        claimed = claim(session, job.id, worker="w", lease_seconds=60)
        assert claimed is not None
        finish(session, job.id, claimed.fence, status=status, result={"n": 1}, error=error)


def _deliveries(runtime: Runtime) -> list[WebhookDelivery]:
    with runtime.db.read() as session:
        return list(session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.id)))


def _make_due(runtime: Runtime) -> None:
    with runtime.db.write() as session:
        session.execute(update(WebhookDelivery).values(due_at=0.0))


def test_the_end_of_a_job_sends_a_signed_webhook(
    any_runtime: Runtime, make_job: MakeJob, receiver: Receiver, settings_with_hooks: Settings
) -> None:
    job = make_job()
    _end(any_runtime, job, receiver.url)
    assert send_due(any_runtime.db, settings_with_hooks) == 1
    ((path, headers, body),) = receiver.got
    assert path == "/hook?token=x"
    message = Webhook(SECRET).verify(body, headers)
    assert (message["type"], message["data"]["id"]) == ("job.succeeded", job.id)
    assert message["data"]["result"] == {"n": 1}
    assert message["timestamp"] == message["data"]["finished_at"]
    assert "source" not in message["data"]["config"]  # may contain signed URLs
    assert "token" not in body.decode()
    (delivery,) = _deliveries(any_runtime)
    assert headers["webhook-id"] == delivery.id
    assert (delivery.status, delivery.attempts, delivery.answer) == ("delivered", 1, "HTTP 204")
    assert send_due(any_runtime.db, settings_with_hooks) == 0
    with any_runtime.db.read() as session:
        lines = session.scalars(select(JobLog.message).order_by(JobLog.number)).all()
    assert lines[-2:] == ["Succeeded.", "Webhook delivered (attempt 1: HTTP 204)."]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_failed_and_cancelled_jobs_send_webhooks(
    any_runtime: Runtime,
    make_job: MakeJob,
    receiver: Receiver,
    settings_with_hooks: Settings,
    status: str,
) -> None:
    _end(any_runtime, make_job(), receiver.url, status)
    send_due(any_runtime.db, settings_with_hooks)
    message = Webhook(SECRET).verify(receiver.got[0][2], receiver.got[0][1])
    assert message["type"] == f"job.{status}"
    assert (message["data"]["error"] is None) == (status == "cancelled")


def test_a_cancelled_queued_job_sends_one_webhook(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    with any_runtime.db.write() as session:
        session.execute(update(Job).values(webhook_url="https://example.org/"))
        for _ in range(2):
            cancel(session, "t", job.id)
    (delivery,) = _deliveries(any_runtime)
    assert delivery.body["type"] == "job.cancelled"


def test_without_a_url_there_is_no_delivery(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    with any_runtime.db.write() as session:
        cancel(session, "t", job.id)
    assert _deliveries(any_runtime) == []


def test_delivery_and_end_are_one_commit(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()

    def end_and_fail() -> None:
        with any_runtime.db.write() as session:
            session.execute(update(Job).values(webhook_url="https://example.org/"))
            claim(session, job.id, worker="w", lease_seconds=60)
            finish(session, job.id, 1, status="succeeded", result={})
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        end_and_fail()
    assert _deliveries(any_runtime) == []


def test_a_failed_delivery_is_retried(
    any_runtime: Runtime, make_job: MakeJob, receiver: Receiver, settings_with_hooks: Settings
) -> None:
    receiver.statuses = [500, 302, 200]
    _end(any_runtime, make_job(), receiver.url)
    pauses = []
    for _ in range(2):
        send_due(any_runtime.db, settings_with_hooks)
        with any_runtime.db.read() as session:
            last = session.scalars(select(WebhookDelivery)).one()
            log_at = session.scalars(select(JobLog.at).order_by(JobLog.number.desc())).first()
        assert log_at is not None
        pauses.append(last.due_at - log_at)
        assert last.status == "waiting"
        assert send_due(any_runtime.db, settings_with_hooks) == 0  # not yet
        _make_due(any_runtime)
    assert pauses == pytest.approx(list(RETRY_SECONDS[:2]), abs=2)
    send_due(any_runtime.db, settings_with_hooks)
    (delivery,) = _deliveries(any_runtime)
    assert (delivery.status, delivery.attempts) == ("delivered", 3)
    assert [path for path, _, _ in receiver.got] == ["/hook?token=x"] * 3  # no redirect followed
    ids = {headers["webhook-id"] for _, headers, _ in receiver.got}
    assert ids == {delivery.id}  # lets the receiver recognize a repeated delivery


def test_retries_end(
    any_runtime: Runtime, make_job: MakeJob, receiver: Receiver, settings_with_hooks: Settings
) -> None:
    receiver.close()
    _end(any_runtime, make_job(), receiver.url)
    for _ in range(len(RETRY_SECONDS) + 1):
        assert _deliveries(any_runtime)[0].status == "waiting"
        _make_due(any_runtime)
        assert send_due(any_runtime.db, settings_with_hooks) == 1
    (delivery,) = _deliveries(any_runtime)
    assert delivery.status == "given_up"
    assert "ConnectError" in str(delivery.answer)
    _make_due(any_runtime)
    assert send_due(any_runtime.db, settings_with_hooks) == 0


def test_a_receiver_that_hangs_times_out(
    any_runtime: Runtime,
    make_job: MakeJob,
    receiver: Receiver,
    settings_with_hooks: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.core.jobs.webhooks._TOTAL_SECONDS", 0.5)
    receiver.go_on.clear()
    for _ in range(10):
        _end(any_runtime, make_job(), receiver.url)
    assert send_due(any_runtime.db, settings_with_hooks) == 10
    assert {delivery.status for delivery in _deliveries(any_runtime)} == {"waiting"}


def test_deliveries_are_sent_concurrently(
    any_runtime: Runtime,
    make_job: MakeJob,
    receiver: Receiver,
    settings_with_hooks: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.core.jobs.webhooks._TOTAL_SECONDS", LONG_SECONDS)
    receiver.answers_from = 10  # the first one is answered after the last one has arrived
    receiver.go_on.clear()
    for _ in range(10):
        _end(any_runtime, make_job(), receiver.url)
    assert send_due(any_runtime.db, settings_with_hooks) == 10
    assert {delivery.status for delivery in _deliveries(any_runtime)} == {"delivered"}


def test_status_410_ends_the_retries(
    any_runtime: Runtime, make_job: MakeJob, receiver: Receiver, settings_with_hooks: Settings
) -> None:
    receiver.statuses = [410]
    _end(any_runtime, make_job(), receiver.url)
    send_due(any_runtime.db, settings_with_hooks)
    (delivery,) = _deliveries(any_runtime)
    assert (delivery.status, delivery.answer) == ("given_up", "HTTP 410")


def test_a_host_that_is_no_longer_allowed_is_not_called(
    any_runtime: Runtime, make_job: MakeJob, receiver: Receiver, settings_with_hooks: Settings
) -> None:
    _end(any_runtime, make_job(), receiver.url)
    send_due(any_runtime.db, _allowing(settings_with_hooks, "example.org"))
    (delivery,) = _deliveries(any_runtime)
    assert (delivery.status, receiver.got) == ("waiting", [])
    assert "TEMI_WEBHOOK_HOSTS" in str(delivery.answer)


def test_two_workers_do_not_send_the_same_delivery(
    any_runtime: Runtime, make_job: MakeJob, receiver: Receiver, settings_with_hooks: Settings
) -> None:
    for _ in range(20):
        _end(any_runtime, make_job(), receiver.url)
    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(lambda _: send_due(any_runtime.db, settings_with_hooks), range(8)))
    assert sum(sent) == 20
    assert max(sent) <= 16
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 20
    assert len(receiver.got) == 20
    assert {delivery.status for delivery in _deliveries(any_runtime)} == {"delivered"}


_SENDER = """
import sys
from pathlib import Path
from app.core.platform.db import Database
from app.core.platform.settings import Settings
from app.core.jobs.webhooks import send_due
settings = Settings(
    _env_file=None, data_dir=Path("."), webhook_hosts="127.0.0.1", webhook_secret=sys.argv[2]
)
send_due(Database(sys.argv[1]), settings)
"""


def test_a_delivery_survives_the_kill_of_its_sender(
    any_runtime: Runtime, make_job: MakeJob, receiver: Receiver, settings_with_hooks: Settings
) -> None:
    receiver.go_on.clear()
    _end(any_runtime, make_job(), receiver.url)
    url = settings_with_hooks.sqlalchemy_url
    sender = subprocess.Popen([sys.executable, "-c", _SENDER, url, SECRET])
    wait_until(lambda: receiver.got or sender.poll() is not None, "the receiver is called")
    sender.kill()
    sender.wait()
    receiver.go_on.set()
    (delivery,) = _deliveries(any_runtime)
    assert (delivery.status, delivery.attempts) == ("waiting", 1)
    assert (
        send_due(any_runtime.db, settings_with_hooks) == 0
    )  # the killed sender may still be sending
    _make_due(any_runtime)
    assert send_due(any_runtime.db, settings_with_hooks) == 1
    (delivery,) = _deliveries(any_runtime)
    assert (delivery.status, delivery.attempts) == ("delivered", 2)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org/a?b=c",
        "https://HOOKS.example.org:8443/",
        "https://other.example.org:9000/",
        "http://127.0.0.1:8080/",
        "http://localhost/",
        "http://[::1]:7000/x",
    ],
)
def test_allowed_hosts(settings: Settings, url: str) -> None:
    hosts = ("hooks.example.org", "other.example.org:9000", "127.0.0.1", "localhost", "[::1]:7000")
    check_webhook_url(_allowing(settings, *hosts), url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.org",
        "https://",
        "https://elsewhere.org/",
        "https://hooks.example.org.evil.org/",
        "https://evil.org/hooks.example.org",
        "https://evil.org\\@hooks.example.org/",
        "https://hooks.example.org@evil.org/",
        "https://user:secret@hooks.example.org/",
        "https://user@hooks.example.org/",
        "http://hooks.example.org/",
        "ftp://hooks.example.org/",
        "https://other.example.org/",
        "https://other.example.org:9001/",
        "http://127.0.0.2/",
        "https://hooks.example.org:99999/",
        "https://hooks.example.org/\x00",
        "https://[::1/",
    ],
)
def test_refused_urls(settings: Settings, url: str) -> None:
    allowing = _allowing(settings, "hooks.example.org", "other.example.org:9000", "127.0.0.1")
    with pytest.raises(InvalidRequest) as refused:
        check_webhook_url(allowing, url)
    assert [error.field for error in refused.value.errors] == ["webhook_url"]


def test_without_hosts_or_secret_there_are_no_webhooks(settings: Settings) -> None:
    check_webhook_url(settings, None)
    with pytest.raises(InvalidRequest, match="TEMI_WEBHOOK_HOSTS"):
        check_webhook_url(settings, "https://example.org/")
    unsigned = settings.model_copy(update={"webhook_hosts": ("example.org",)})
    with pytest.raises(InvalidRequest, match="TEMI_WEBHOOK_SECRET"):
        check_webhook_url(unsigned, "https://example.org/")
