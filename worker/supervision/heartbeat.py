"""Who this worker is and what it does just now, as the table of workers shows it."""

import os
import platform
import socket
import threading
from importlib.metadata import version
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.core.jobs.workers import Identity, delete_expired, deregister, record_heartbeat
from app.core.platform.resources import BFLOAT16
from app.core.platform.settings import Settings
from app.core.runtime import Runtime

_GPUS = Path("/proc/driver/nvidia/gpus")
_CPUS = Path("/proc/cpuinfo")
_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}
log = structlog.get_logger()


class Presence:
    """Set by whoever watches over a job, read by the thread that says hello."""

    def __init__(self) -> None:
        self.job_id: str | None = None
        self.stage: str | None = None
        self.declined: set[str] = set()
        """Jobs that this worker has tried to help and could not."""

    def working(self, job_id: str, stage: str | None = None) -> None:
        self.job_id, self.stage = job_id, stage

    def rest(self) -> None:
        self.job_id = self.stage = None

    @property
    def idle(self) -> bool:
        return self.job_id is None


presence = Presence()
"""Of this process: it is one worker."""


def takes(settings: Settings) -> tuple[str, ...]:
    """What the settings say, and jobs in bfloat16 if the hardware has instructions for it.

    Without them a CPU gives the same numbers a hundred times slower: another worker is to do it.
    """
    return (*settings.worker_takes, BFLOAT16) if _has_bfloat16(settings) else settings.worker_takes


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def identity(settings: Settings) -> Identity:
    return Identity(
        name=worker_name(),
        host=socket.gethostname(),
        pid=os.getpid(),
        takes=takes(settings),
        device=describe_device(settings),
        version=version("temi-service"),
    )


def describe_device(settings: Settings) -> str:
    """As the machine calls it: to ask torch would cost this process seconds and a GB."""
    found = [] if settings.device == "cpu" else _gpu_names()
    if settings.device != "auto":
        return f"{settings.device}: {', '.join(found)}" if found else settings.device
    if found and os.environ.get("CUDA_VISIBLE_DEVICES") != "":
        return ", ".join(found)
    return f"{_cpu_name()}, {settings.threads} threads"


def heartbeat_while(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Now, and from a thread of its own with every heartbeat: a long job must not silence it."""
    who = identity(runtime.settings)
    if BFLOAT16 not in who.takes:
        reason = f"{who.device} has no instructions for it"
        log.info("bfloat16_jobs_not_taken", reason=reason)

    def loop() -> None:
        while True:
            try:
                with runtime.db.write() as session:
                    record_heartbeat(session, who, job_id=presence.job_id, stage=presence.stage)
                    delete_expired(session, runtime.settings.lease_seconds)
            except SQLAlchemyError as error:
                log.warning("heartbeat_not_recorded", reason=str(error))
            if stopping.wait(runtime.settings.heartbeat_seconds):
                return

    thread = threading.Thread(target=loop, name="presence", daemon=True)
    thread.start()
    return thread


def leave(runtime: Runtime) -> None:
    try:
        with runtime.db.write() as session:
            deregister(session, worker_name())
    except SQLAlchemyError as error:  # the others will forget it
        log.warning("goodbye_not_said", reason=str(error))


def _has_bfloat16(settings: Settings) -> bool:
    """GPUs have had it since 2020; of a CPU the kernel knows."""
    if settings.device != "cpu" and _gpu_names():
        return True
    try:
        flags = (_field(_CPUS.read_text(), "flags") or "").split()
    except OSError:
        return False
    return not _BFLOAT16_FLAGS.isdisjoint(flags)


def _gpu_names() -> list[str]:
    try:
        described = [path.read_text() for path in sorted(_GPUS.glob("*/information"))]
    except OSError:
        return []
    return [name for text in described if (name := _field(text, "Model"))]


def _cpu_name() -> str:
    try:
        name = _field(_CPUS.read_text(), "model name")
    except OSError:
        name = None
    return name or platform.processor() or platform.machine()


def _field(text: str, name: str) -> str | None:
    """The value of the first line `name: value`."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None
