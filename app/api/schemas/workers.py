"""Workers."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from app.api.schemas.common import shown_fields
from app.core.platform import tables


class Worker(BaseModel):
    """A process that does jobs."""

    name: str = Field(examples=["gpu-1:4711"])
    host: str = Field(examples=["gpu-1"])
    pid: int
    takes: list[Literal["cpu", "gpu", "bfloat16"]] = Field(
        description="`cpu`: ingest, map, export and shares of mining. `gpu`: all that trains or "
        "embeds. `bfloat16`: jobs of that precision, for which its hardware has instructions."
    )
    device: str = Field(examples=["NVIDIA L4"])
    version: str = Field(examples=["0.1.0"])
    started_at: datetime
    seen_at: datetime = Field(description="When it was last heard of.")
    busy: bool = Field(description="It works on a job, its own or another worker's.")
    job_id: str | None = Field(description="Null: it rests, or the job is not yours.")
    stage: str | None

    @classmethod
    def of(cls, row: tables.Worker, job_id: str | None) -> "Worker":
        fields = shown_fields(cls, row) | {"busy": row.job_id is not None, "job_id": job_id}
        return cls(**fields | {"stage": row.stage if job_id else None})
