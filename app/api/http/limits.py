"""Limits on what a key may store and have open, as dependencies of routes."""

from collections.abc import AsyncIterator

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from app.api.http.auth import AccessState
from app.api.http.dependencies import ActorDep, IdempotencyKeyHeader, RuntimeDep
from app.core.access import quota
from app.core.jobs.limits import check_open_jobs
from app.core.platform.actor import Actor
from app.core.runtime import Runtime


async def _limit_downloads(request: Request) -> AsyncIterator[None]:
    access: AccessState = request.app.state.access
    with access.downloads.acquire(_owner(request)):
        yield


async def _limit_event_streams(request: Request) -> AsyncIterator[None]:
    access: AccessState = request.app.state.access
    with access.event_streams.acquire(_owner(request)):
        yield


# A download or event stream lasts as long as its reader takes, and holds a connection and a file
# or a timer. Both are released when the response was sent, or the client has disconnected.
DownloadLimit = Depends(_limit_downloads, scope="request")
EventStreamLimit = Depends(_limit_event_streams, scope="request")


def _owner(request: Request) -> str:
    """The key; without one, the client's address."""
    actor = request.state.actor
    if actor.key_id or actor.key_name:
        return f"key {actor.key_id or actor.key_name}"
    return f"address {request.client.host if request.client else ''}"


async def check_quota(
    request: Request,
    runtime: RuntimeDep,
    actor: ActorDep,
    idempotency_key: IdempotencyKeyHeader = None,
) -> None:
    """Refuses a body that exceeds the quota before it is sent. A body without a Content-Length is
    checked by the job that reads it."""
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdigit() else 0
    await run_in_threadpool(_check_quota, runtime, actor, size, idempotency_key)


def _check_quota(runtime: Runtime, actor: Actor, size: int, idempotency_key: str | None) -> None:
    with runtime.db.read() as session:
        if not quota.was_answered(session, actor.tenant, idempotency_key):
            check_open_jobs(session, actor.tenant, runtime.settings)
            quota.check_quota(session, actor, size)
