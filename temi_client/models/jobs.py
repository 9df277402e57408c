"""Jobs."""

from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import Field

from temi_client.models.base import ApiModel, ErrorInfo

JobKind = Literal["cluster", "sweep", "finetune", "predict", "map", "export", "gather"]
ListedKind = Literal["ingest", JobKind]  # uploads are jobs, too
OpenStatus = Literal["queued", "running", "cancelling"]
FinalStatus = Literal["succeeded", "failed", "cancelled"]
JobStatus = Literal[OpenStatus, FinalStatus]


class JobProgress(ApiModel):
    stage: str | None = None
    stages: list[str] = Field(default_factory=list)
    completed: int = 0
    total: int = 0  # 0 while unknown
    rate: float | None = None  # items per second in this stage
    eta_seconds: float | None = None


class JobCounts(ApiModel):
    total: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0  # files of an ingest that are not images


class JobEstimate(ApiModel):
    memory_bytes: int  # peak of the training


class Job(ApiModel):
    id: str
    kind: str  # a `ListedKind`, or one that a newer service adds
    status: str  # a `JobStatus`, or one that a newer service adds
    dataset_id: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    priority: int = 0
    webhook_url: str | None = None
    estimate: JobEstimate | None = None
    created_by: str | None = None
    progress: JobProgress = JobProgress()
    counts: JobCounts = JobCounts()
    timings: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    error: ErrorInfo | None = None

    @property
    def finished(self) -> bool:
        return self.status in get_args(FinalStatus)


class LogLine(ApiModel):
    number: int
    at: datetime
    level: str
    message: str


class CurvePoint(ApiModel):
    step: int
    values: dict[str, Any]
