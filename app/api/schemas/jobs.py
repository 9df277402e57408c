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
    total: int = Field(description="0 while it is not known.")
    rate: float | None = Field(description="Items a second in this stage.")
    eta_seconds: float | None = Field(description="Until the end of this stage.")


class JobCounts(BaseModel):
    total: int
    completed: int
    failed: int


class JobEstimate(BaseModel):
    memory_bytes: int = Field(
        description="Of its training at its peak, without files that are only mapped."
    )


class Job(BaseModel):
    id: str = Field(examples=["job_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    kind: KindName
    status: JobStatus
    dataset_id: str
    config: dict[str, Any] = Field(description="As it was frozen when the job was created.")
    priority: int = Field(default=0, description="Higher runs sooner, among one's own.")
    webhook_url: str | None = Field(default=None, description="Told when the job ends.")
    progress: JobProgress
    counts: JobCounts
    timings: dict[str, Any] = Field(description="Seconds of each stage that has ended.")
    estimate: JobEstimate | None = Field(
        default=None, description="What its training will take; null for jobs without one."
    )
    created_by: str | None = Field(
        default=None, description="Id of the key that started it; null: none, or the settings' own."
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
            counts=JobCounts(total=row.total, completed=row.completed, failed=row.failed),
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
