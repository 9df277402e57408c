"""Models, their versions and aliases."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.common import shown_fields, to_time
from app.core.platform import tables


class ModelRef(BaseModel):
    name: str
    version: int


class Model(BaseModel):
    name: str
    latest_version: int = Field(description="The newest version that was not deleted.")
    aliases: dict[str, int]
    created_at: datetime

    @classmethod
    def of(cls, row: tables.Model, aliases: Mapping[str, int]) -> "Model":
        assert row.latest_version is not None  # one without versions is not shown
        return cls(
            name=row.name,
            latest_version=row.latest_version,
            aliases=dict(aliases),
            created_at=to_time(row.created_at),
        )


class ModelVersion(BaseModel):
    name: str
    version: int
    clustering_id: str | None = Field(description="Null if the version was imported.")
    job_id: str | None = Field(description="Null if it was imported, or once the job was deleted.")
    files: dict[str, str] = Field(description="SHA-256 of each file.")
    manifest: dict[str, Any]
    created_at: datetime

    @classmethod
    def of(cls, name: str, row: tables.ModelVersion) -> "ModelVersion":
        return cls(name=name, **shown_fields(cls, row))


class AliasUpdate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**31 - 1)


class AliasChange(BaseModel):
    number: int = Field(description="1, 2, ... over all aliases of the model, without gaps.")
    alias: str
    kind: Literal["set", "rollback", "remove"]
    before: int | None = Field(description="The version it pointed to; null if it was new.")
    version: int | None = Field(description="The version it points to since; null if removed.")
    changed_by: str | None = Field(description="Name of the API key; null if none was needed.")
    changed_at: datetime

    @classmethod
    def of(cls, row: tables.ModelAliasChange) -> "AliasChange":
        return cls(**shown_fields(cls, row))
