"""Models and predictions."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.common import ErrorInfo, shown_fields
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


class ClusterProbability(BaseModel):
    cluster_id: int
    label: str
    probability: float


class Prediction(BaseModel):
    image: str = Field(description="The file's name in the request.")
    cluster_id: int | None
    label: str | None
    probability: float | None
    top_k: list[ClusterProbability]
    probabilities: list[float] | None = Field(
        default=None, description="Of every cluster, if asked for."
    )
    error: ErrorInfo | None = Field(description="Why this one image could not be read.")


class Predictions(BaseModel):
    model: ModelRef
    data: list[Prediction]
