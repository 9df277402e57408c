"""The worker's row in the table of workers: what it is, which resources it has, what it does."""

import os
import socket
import threading
from importlib.metadata import version

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.core.jobs.workers import Identity, delete_expired, deregister, record_heartbeat
from app.core.platform.db import Database
from app.core.platform.hardware import cpu_flags, cpu_name, gpu_names, visible_gpus
from app.core.platform.resources import BFLOAT16
from app.core.platform.settings import Settings
from app.core.runtime import Runtime

_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}
log = structlog.get_logger()


class WorkerState:
    """Written by the supervisors of jobs and shards, read by the heartbeat thread."""

    def __init__(self) -> None:
        self.job_id: str | None = None
        self.stage: str | None = None
        self.excluded_jobs: set[str] = set()
        """Jobs whose shards this worker could not run."""

    def start_work(self, job_id: str, stage: str | None = None) -> None:
        self.job_id, self.stage = job_id, stage

    def end_work(self) -> None:
        self.job_id = self.stage = None

    @property
    def idle(self) -> bool:
        return self.job_id is None


worker_state = WorkerState()
"""A process is one worker."""


def available_resources(settings: Settings) -> tuple[str, ...]:
    """Returns `TEMI_WORKER_TAKES`, and bfloat16 if the hardware has instructions for it.

    Without them a CPU computes the same numbers a hundred times slower, so the jobs are left to
    another worker.
    """
    return (*settings.worker_takes, BFLOAT16) if _has_bfloat16(settings) else settings.worker_takes


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def identity(settings: Settings) -> Identity:
    return Identity(
        name=worker_name(),
        host=socket.gethostname(),
        pid=os.getpid(),
        takes=available_resources(settings),
        device=describe_device(settings),
        version=version("temi-service"),
    )


def describe_device(settings: Settings) -> str:
    if settings.device == "auto":
        return ", ".join(visible_gpus()) or f"{cpu_name()}, {settings.threads} threads"
    found = [] if settings.device == "cpu" else gpu_names()
    return f"{settings.device}: {', '.join(found)}" if found else settings.device


def start_heartbeat(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Records a heartbeat now and at every interval, in a thread: also during a long job."""
    worker = identity(runtime.settings)
    if BFLOAT16 not in worker.takes:
        log.info("bfloat16_not_supported", device=worker.device)

    def loop() -> None:
        while True:
            try:
                with runtime.db.write() as session:
                    record_heartbeat(
                        session, worker, job_id=worker_state.job_id, stage=worker_state.stage
                    )
                    delete_expired(session, runtime.settings.lease_seconds)
            except SQLAlchemyError as error:
                log.warning("worker_heartbeat_failed", reason=str(error))
            if stopping.wait(runtime.settings.heartbeat_seconds):
                return

    thread = threading.Thread(target=loop, name="heartbeat", daemon=True)
    thread.start()
    return thread


def deregister_worker(db: Database) -> None:
    try:
        with db.write() as session:
            deregister(session, worker_name())
    except SQLAlchemyError as error:  # the other workers delete the row once it has expired
        log.warning("deregistration_failed", reason=str(error))


def _has_bfloat16(settings: Settings) -> bool:
    """GPUs have had it since 2020; for a CPU the kernel lists its instructions."""
    if settings.device != "cpu" and gpu_names():
        return True
    return not _BFLOAT16_FLAGS.isdisjoint(cpu_flags())
