"""Models, their versions and aliases."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.common import shown_fields
from app.core import tables


class ModelRef(BaseModel):
    name: str
    version: int


class Model(BaseModel):
    name: str
    latest_version: int
    aliases: dict[str, int]
    created_at: datetime


class ModelVersion(BaseModel):
    name: str
    version: int
    clustering_id: str
    job_id: str | None = Field(description="Null once the job was deleted.")
    files: dict[str, str] = Field(description="SHA-256 of each file.")
    manifest: dict[str, Any]
    created_at: datetime

    @classmethod
    def of(cls, name: str, row: tables.ModelVersion) -> "ModelVersion":
        return cls(name=name, **shown_fields(cls, row))


class AliasUpdate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**31 - 1)
