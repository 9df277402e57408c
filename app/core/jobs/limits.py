"""What a tenant may ask for: how many unfinished jobs, and how much memory one of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.platform.errors import FieldError, JobTooLarge, TooManyJobs
from app.core.platform.settings import GiB, Settings
from app.core.platform.tables import OPEN, Job
from temi.backbones.catalog import feature_dim
from temi.config import TrainConfig
from temi.training.memory import estimate_memory

# A library's model whose width is not listed: few are wider, and most trainings project anyway.
_UNKNOWN_DIM = 2048


def check_open_jobs(session: Session, tenant: str, settings: Settings) -> None:
    """Requests that are handled at the same time may exceed the limit by their number."""
    most = settings.max_open_jobs
    open_jobs = select(Job.id).where(Job.tenant == tenant, Job.status.in_(OPEN)).limit(most)
    count = session.scalar(select(func.count()).select_from(open_jobs.subquery())) or 0
    if count >= most:
        raise TooManyJobs(
            f"There are {count} unfinished jobs, and at most {most} are allowed "
            "(TEMI_MAX_OPEN_JOBS). Wait until some have ended, or cancel some."
        )


def training_memory(trainings: Sequence[Mapping[str, Any]], n_images: int, backbone: str) -> int:
    """The estimate for the largest of these trainings, in bytes."""
    dim = feature_dim(backbone) or _UNKNOWN_DIM
    configs = (TrainConfig.from_dict(training) for training in trainings)
    return max(estimate_memory(config, n_images, dim).total for config in configs)


def check_memory(job: Job, settings: Settings) -> None:
    """Of a job that is about to be committed."""
    most = settings.max_job_bytes
    if job.memory_bytes is None or job.memory_bytes <= most:
        return
    trainings = job.config["train"]
    largest = max(
        trainings if job.kind == "sweep" else [trainings], key=lambda one: one["n_clusters"]
    )
    needed = f"{job.memory_bytes / GiB:.1f} GiB"
    detail = (
        f"The training would take about {needed} of memory ({job.memory_bytes:,} bytes), and a job "
        f"may take {most / GiB:.1f} GiB (TEMI_MAX_JOB_BYTES): {largest['n_heads']} heads for "
        f"{largest['n_clusters']} clusters are too many. Ask for fewer heads or fewer clusters."
    )
    swept = job.config.get("parameter") == "n_clusters"
    fields = ("n_heads", "values" if swept else "n_clusters")
    message = f"needs about {needed} of memory together with the other one; ask for less"
    raise JobTooLarge(detail, errors=[FieldError(field, message) for field in fields])
