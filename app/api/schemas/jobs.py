"""Jobs."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.schemas.common import ErrorInfo, shown_fields, to_time
from app.core.jobs.kinds import KindName
from app.core.platform import tables

JobStatus = Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]


class JobProgress(BaseModel):
    stage: str | None
    stages: list[str]
    completed: int
    total: int = Field(description="0 while unknown.")
    rate: float | None = Field(description="Items per second in this stage.")
    eta_seconds: float | None = Field(description="Seconds until the end of this stage.")


class JobCounts(BaseModel):
    total: int
    completed: int
    failed: int
    skipped: int = Field(description="Files of an ingest that are not images.")


class JobEstimate(BaseModel):
    memory_bytes: int = Field(
        description="Peak memory of the training, without memory-mapped files."
    )


class Job(BaseModel):
    id: str = Field(examples=["job_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    kind: KindName
    status: JobStatus
    dataset_id: str
    config: dict[str, Any] = Field(description="The configuration, fixed when the job was created.")
    priority: int = Field(default=0, description="Your jobs with a higher priority run first.")
    webhook_url: str | None = Field(
        default=None, description="Gets a signed request when the job ends."
    )
    progress: JobProgress
    counts: JobCounts
    timings: dict[str, Any] = Field(description="Seconds of each finished stage.")
    estimate: JobEstimate | None = Field(
        default=None, description="Resources of the training; null for jobs that do not train."
    )
    created_by: str | None = Field(
        default=None,
        description="Id of the key that created it; null: none, or the settings' key.",
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: dict[str, Any] | None
    error: ErrorInfo | None

    @classmethod
    def of(cls, row: tables.Job) -> "Job":
        left = max(0, row.total - row.completed)
        running = row.status == "running" and row.rate and row.total
        return cls(
            **shown_fields(cls, row),
            progress=JobProgress(
                stage=row.stage,
                stages=row.stages,
                completed=row.completed,
                total=row.total,
                rate=row.rate,
                eta_seconds=round(left / row.rate, 1) if running and row.rate else None,
            ),
            estimate=None
            if row.memory_bytes is None
            else JobEstimate(memory_bytes=row.memory_bytes),
            counts=JobCounts(
                total=row.total, completed=row.completed, failed=row.failed, skipped=row.skipped
            ),
        )


class JobLogLine(BaseModel):
    number: int
    at: datetime
    level: Literal["debug", "info", "warning", "error"]
    message: str

    @classmethod
    def of(cls, row: tables.JobLog) -> "JobLogLine":
        return cls(**shown_fields(cls, row) | {"at": to_time(row.at)})


class JobCurvePoint(BaseModel):
    step: int
    values: dict[str, Any] = Field(examples=[{"loss": 1.25}])

    @classmethod
    def of(cls, row: tables.JobCurve) -> "JobCurvePoint":
        return cls(**shown_fields(cls, row))
