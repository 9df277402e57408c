"""Webhooks at the end of a job and for new proposals, signed as in Standard Webhooks.

A delivery is a row that is written with the end of the job, so it cannot be lost. A worker claims
it for a minute, sends it and stores the response; if the worker dies, it becomes due again.
"""

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session, aliased

from app.core.jobs.records import add_log
from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import InvalidRequest, ServiceError
from app.core.platform.ids import new_id
from app.core.platform.settings import Settings
from app.core.platform.tables import Job, Proposal, WebhookDelivery

if TYPE_CHECKING:
    import httpx

RETRY_SECONDS = (5.0, 30.0, 120.0, 600.0, 3600.0, 21600.0)  # after each failed attempt
_CONNECT_SECONDS = 5.0
_TOTAL_SECONDS = 15.0
_CLAIM_SECONDS = 60.0  # longer than an attempt can take
_CONCURRENCY = 16
_GONE = 410  # the receiver wants no further attempts
log = structlog.get_logger()


@dataclass(frozen=True)
class _Response:
    delivered: bool
    text: str
    final: bool = False


def check_webhook_url(settings: Settings, url: str | None) -> None:
    """Accepts only hosts of TEMI_WEBHOOK_HOSTS; they may be inside the own network."""
    if url is None:
        return
    import httpx  # a job's process that has no webhook does not need it

    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise _refused(f"is not a valid URL: {error}") from error
    host = address.host.lower()
    names = {host, f"{host}:{address.port}", f"[{host}]:{address.port}"}
    if not host or not names & {allowed.lower() for allowed in settings.webhook_hosts}:
        raise _refused(f"its host {host!r} is not allowed (TEMI_WEBHOOK_HOSTS)")
    if address.scheme != "https" and not (address.scheme == "http" and _is_loopback(host)):
        raise _refused("must start with https://")
    if address.port is not None and not 0 < address.port < 65536:
        raise _refused(f"port {address.port} is not between 1 and 65535")
    if address.userinfo:
        raise _refused("must not contain a user name or a password")
    if settings.webhook_secret is None:
        raise _refused("the server cannot sign webhooks: TEMI_WEBHOOK_SECRET is not set")


def add_delivery(session: Session, job: Job) -> None:
    """Adds the delivery of a job's webhook, in the transaction that ends the job."""
    if job.webhook_url is None:
        return
    body = {
        "type": f"job.{job.status}",
        "timestamp": _iso(job.finished_at),
        "data": _describe(job),
    }
    session.add(WebhookDelivery(id=new_id("msg"), job_id=job.id, url=job.webhook_url, body=body))
    session.flush()


def add_proposal_delivery(
    session: Session,
    job: Job,
    url: str | None,
    model: Mapping[str, Any],
    proposals: Sequence[Proposal],
) -> None:
    """Adds the delivery of new proposals, in the transaction of the gather job that found them."""
    if url is None or not proposals:
        return
    found = [
        {"id": proposal.id, "images": proposal.size, "tightness": proposal.tightness}
        for proposal in proposals
    ]
    body = {
        "type": "proposals.created",
        "timestamp": _iso(proposals[0].created_at),
        "data": {"model": dict(model), "job_id": job.id, "proposals": found},
    }
    session.add(WebhookDelivery(id=new_id("msg"), job_id=job.id, url=url, body=body))
    session.flush()


def send_due(db: Database, settings: Settings) -> int:
    """Sends due deliveries, a bounded number concurrently; returns the number of attempts."""
    claimed = _claim_due(db)
    if claimed:
        asyncio.run(_send_all(db, settings, claimed))
    return len(claimed)


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest.field("webhook_url", message)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _describe(job: Job) -> dict[str, Any]:
    """Returns the job as the API does, without its source, whose URLs may contain keys."""
    return {
        "id": job.id,
        "kind": job.kind,
        "status": job.status,
        "dataset_id": job.dataset_id,
        "priority": job.priority,
        "config": {name: value for name, value in job.config.items() if name != "source"},
        "counts": {
            name: getattr(job, name) for name in ("total", "completed", "failed", "skipped")
        },
        "timings": job.timings,
        "created_at": _iso(job.created_at),
        "started_at": _iso(job.started_at),
        "finished_at": _iso(job.finished_at),
        "result": job.result,
        "error": job.error,
    }


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _claim_due(db: Database) -> Sequence[WebhookDelivery]:
    with db.read() as session:  # if nothing is due, do not wait for writers
        if (
            session.scalar(select(WebhookDelivery.id).where(*_due(WebhookDelivery)).limit(1))
            is None
        ):
            return []
    other = aliased(WebhookDelivery)
    chosen = (
        select(other.id)
        .where(*_due(other))
        .order_by(other.due_at)
        .limit(_CONCURRENCY)
        .with_for_update(skip_locked=True)
    )
    with db.write() as session:
        ids = session.scalars(chosen).all()
        return session.scalars(
            update(WebhookDelivery)
            .where(WebhookDelivery.id.in_(ids))
            .values(attempts=WebhookDelivery.attempts + 1, due_at=db_now() + _CLAIM_SECONDS)
            .returning(WebhookDelivery)
            .execution_options(synchronize_session=False)
        ).all()


def _due(delivery: type[WebhookDelivery]) -> tuple[Any, ...]:
    return delivery.status == "waiting", delivery.due_at <= db_now()


async def _send_all(
    db: Database, settings: Settings, deliveries: Sequence[WebhookDelivery]
) -> None:
    import httpx  # as above

    limits = httpx.Timeout(_TOTAL_SECONDS, connect=_CONNECT_SECONDS)
    # Not through a proxy of the environment: it could read what is for the receiver only.
    async with httpx.AsyncClient(timeout=limits, trust_env=False) as client:

        async def send(delivery: WebhookDelivery) -> None:
            response = await _send(client, settings, delivery)
            await asyncio.to_thread(_store_response, db, delivery, response)

        await asyncio.gather(*map(send, deliveries))


async def _send(
    client: "httpx.AsyncClient", settings: Settings, delivery: WebhookDelivery
) -> _Response:
    """Follows no redirects and reads only the status of the response."""
    import httpx  # as above

    body = json.dumps(delivery.body, separators=(",", ":")).encode()
    try:
        check_webhook_url(settings, delivery.url)  # the settings may have changed
        headers = _signed(settings, delivery.id, body)
        async with (
            asyncio.timeout(_TOTAL_SECONDS),  # httpx limits only the time between two bytes
            client.stream("POST", delivery.url, content=body, headers=headers) as response,
        ):
            status = response.status_code
    except ServiceError as error:
        return _Response(False, error.detail)
    except TimeoutError:
        return _Response(False, f"no response within {_TOTAL_SECONDS:.0f} s")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return _Response(False, f"{type(error).__name__}: {error}"[:500])
    return _Response(200 <= status < 300, f"HTTP {status}", final=status == _GONE)


def _signed(settings: Settings, message_id: str, body: bytes) -> dict[str, str]:
    assert settings.webhook_secret is not None
    secret = settings.webhook_secret.get_secret_value().removeprefix("whsec_")
    key = base64.b64decode(secret + "=" * (-len(secret) % 4))
    sent_at = str(int(time.time()))
    content = f"{message_id}.{sent_at}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return {
        "content-type": "application/json",
        "user-agent": "temi-service",
        "webhook-id": message_id,
        "webhook-timestamp": sent_at,
        "webhook-signature": f"v1,{signature}",
    }


def _store_response(db: Database, delivery: WebhookDelivery, response: _Response) -> None:
    """Has no effect if the delivery became due again and another worker has claimed it."""
    retries_left = delivery.attempts <= len(RETRY_SECONDS)
    values: dict[str, Any] = {"answer": response.text}
    if response.delivered:
        values["status"] = "delivered"
    elif response.final or not retries_left:
        values["status"] = "given_up"
    else:
        values["due_at"] = db_now() + RETRY_SECONDS[delivery.attempts - 1]
    with db.write() as session:
        # The job's row first, as every writer of a job does; the lock keeps its log in order.
        session.execute(select(Job.id).where(Job.id == delivery.job_id).with_for_update())
        status = session.scalar(
            update(WebhookDelivery)
            .where(
                WebhookDelivery.id == delivery.id,
                WebhookDelivery.status == "waiting",
                WebhookDelivery.attempts == delivery.attempts,
            )
            .values(**values)
            .returning(WebhookDelivery.status)
            .execution_options(synchronize_session=False)
        )
        if status is not None:
            _log_response(session, delivery, status, response)


def _log_response(
    session: Session, delivery: WebhookDelivery, status: str, response: _Response
) -> None:
    log.info(
        "webhook_sent",
        id=delivery.id,
        job_id=delivery.job_id,
        status=status,
        response=response.text,
    )
    text = {
        "delivered": "Webhook delivered",
        "waiting": "Webhook failed, will be retried",
        "given_up": "Webhook failed, no retries left",
    }[status]
    level = "info" if status == "delivered" else "warning"
    line = f"{text} (attempt {delivery.attempts}: {response.text})."
    add_log(session, delivery.job_id, line, level)
