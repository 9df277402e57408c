"""Steps of workers and users on a job, one transaction each."""

from app.core.jobs import lifecycle as jobs
from app.core.jobs.lifecycle import Progress
from app.core.jobs.notifications import due_for_notification
from app.core.platform.tables import Job
from app.core.runtime import Runtime

EXPIRED = -1.0  # a lease that has already expired


def claim_job(runtime: Runtime, job: Job, lease: float = 60.0, worker: str = "w") -> Job | None:
    with runtime.db.write() as session:
        return jobs.claim(session, job.id, worker=worker, lease_seconds=lease)


def reload_job(runtime: Runtime, job: Job) -> Job:
    with runtime.db.read() as session:
        return session.get_one(Job, job.id)


def send_heartbeat(runtime: Runtime, job: Job, fence: int, progress: Progress | None = None) -> str:
    with runtime.db.write() as session:
        return jobs.heartbeat(session, job.id, fence, lease_seconds=60.0, progress=progress)


def end_job(runtime: Runtime, job: Job, fence: int, status: str = "succeeded") -> None:
    with runtime.db.write() as session:
        jobs.finish(session, job.id, fence, status=status, result={"ok": 1})


def cancel_job(runtime: Runtime, job: Job) -> Job:
    with runtime.db.write() as session:
        return jobs.cancel(session, "t", job.id)


def publish_due(runtime: Runtime) -> list[str]:
    with runtime.db.write() as session:
        return [job.id for job in due_for_notification(session)]
