"""What takes room is refused before it is sent, where it can be known that there is none."""

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from app.api.http.dependencies import ActorDep, IdempotencyKeyHeader, RuntimeDep
from app.core.access import quota
from app.core.jobs.limits import check_open_jobs
from app.core.platform.actor import Actor
from app.core.runtime import Runtime


async def check_room(
    request: Request,
    runtime: RuntimeDep,
    actor: ActorDep,
    idempotency_key: IdempotencyKeyHeader = None,
) -> None:
    """What arrives without a length is stopped by the job that reads it."""
    declared = request.headers.get("content-length", "")
    announced = int(declared) if declared.isdigit() else 0
    await run_in_threadpool(_check, runtime, actor, announced, idempotency_key)


def _check(runtime: Runtime, actor: Actor, announced: int, idempotency_key: str | None) -> None:
    with runtime.db.read() as session:
        if not quota.was_answered(session, actor.tenant, idempotency_key):
            check_open_jobs(session, actor.tenant, runtime.settings)
            quota.check_room(session, actor, announced)
