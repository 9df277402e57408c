"""Workers."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from app.api.schemas.common import shown_fields
from app.core.platform import tables


class Worker(BaseModel):
    """A process that runs jobs."""

    name: str = Field(examples=["gpu-1:4711"])
    host: str = Field(examples=["gpu-1"])
    pid: int
    takes: list[Literal["cpu", "gpu", "bfloat16"]] = Field(
        description="`cpu`: ingest, map, export, shards of mining. `gpu`: training and embedding. "
        "`bfloat16`: jobs of that precision, if the hardware supports it."
    )
    device: str = Field(examples=["NVIDIA L4"])
    version: str = Field(examples=["0.1.0"])
    started_at: datetime
    seen_at: datetime = Field(description="Time of the last heartbeat.")
    busy: bool = Field(description="It works on a job or on a shard of another worker's job.")
    job_id: str | None = Field(description="Null: it is idle, or the job is not yours.")
    stage: str | None

    @classmethod
    def of(cls, row: tables.Worker, job_id: str | None) -> "Worker":
        fields = shown_fields(cls, row) | {"busy": row.job_id is not None, "job_id": job_id}
        return cls(**fields | {"stage": row.stage if job_id else None})
