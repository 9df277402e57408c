"""Limits of a tenant's jobs: how many are unfinished, and how much memory one may need."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.platform.errors import FieldError, JobTooLarge, TooManyJobs
from app.core.platform.settings import GiB, Settings
from app.core.platform.tables import OPEN, Job
from temi.backbones.catalog import feature_dim
from temi.config import MAX_AUTO_CLUSTERS, TrainConfig
from temi.training.memory import estimate_memory

# For a model that the catalog does not list: few are wider, and most trainings project anyway.
_UNKNOWN_DIM = 2048


def check_open_jobs(session: Session, tenant: str, settings: Settings) -> None:
    """Raises TooManyJobs at the limit. Concurrent requests may exceed it by their number."""
    most = settings.max_open_jobs
    open_jobs = select(Job.id).where(Job.tenant == tenant, Job.status.in_(OPEN)).limit(most)
    count = session.scalar(select(func.count()).select_from(open_jobs.subquery())) or 0
    if count >= most:
        raise TooManyJobs(
            f"There are {count} unfinished jobs, and at most {most} are allowed "
            "(TEMI_MAX_OPEN_JOBS). Wait until some have ended, or cancel some."
        )


def training_memory(trainings: Sequence[Mapping[str, Any]], n_images: int, backbone: str) -> int:
    """Returns the estimate for the largest of these trainings, in bytes."""
    dim = feature_dim(backbone) or _UNKNOWN_DIM
    configs = (TrainConfig.from_dict(training) for training in trainings)
    return max(estimate_memory(config, n_images, dim).total for config in configs)


def check_memory(job: Job, settings: Settings) -> None:
    """Raises JobTooLarge if the job would need more than TEMI_MAX_JOB_BYTES."""
    most = settings.max_job_bytes
    if job.memory_bytes is None or job.memory_bytes <= most:
        return
    trainings = job.config["train"] if job.kind == "sweep" else [job.config["train"]]
    # The number is None if it is to be found.
    clusters = max(training["n_clusters"] or MAX_AUTO_CLUSTERS for training in trainings)
    needed = f"{job.memory_bytes / GiB:.1f} GiB"
    detail = (
        f"The training would take about {needed} of memory ({job.memory_bytes:,} bytes), and a job "
        f"may take {most / GiB:.1f} GiB (TEMI_MAX_JOB_BYTES): the heads for "
        f"{clusters:,} clusters are too many. Use fewer heads or fewer clusters."
    )
    swept = job.config.get("parameter") == "n_clusters"
    fields = ("n_heads", "values" if swept else "n_clusters")
    message = f"needs about {needed} of memory together with the other field; use a lower value"
    raise JobTooLarge(detail, errors=[FieldError(field, message) for field in fields])
