"""Models and predictions."""

from datetime import datetime
from typing import Any

from pydantic import Field

from temi_client.models.base import Answer, ErrorInfo


class ModelRef(Answer):
    name: str
    version: int


class Model(Answer):
    name: str
    latest_version: int
    aliases: dict[str, int] = Field(default_factory=dict)
    created_at: datetime


class ModelVersion(Answer):
    name: str
    version: int
    clustering_id: str | None = None
    job_id: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    manifest: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime


class ClusterProbability(Answer):
    cluster_id: int
    label: str
    probability: float


class Prediction(Answer):
    image: str
    cluster_id: int | None = None
    label: str | None = None
    probability: float | None = None
    top_k: list[ClusterProbability] = Field(default_factory=list)
    probabilities: list[float] | None = None  # of every cluster, if asked for
    error: ErrorInfo | None = None


class Predictions(Answer):
    model: ModelRef
    data: list[Prediction]
