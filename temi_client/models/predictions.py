"""Labels for new images."""

from pydantic import Field

from temi_client.models.base import Answer, ErrorInfo
from temi_client.models.registry import ModelRef


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


class LoadedModel(Answer):
    model: ModelRef
    backend: str  # what computes its features: onnx or torch
    precision: str


class LoadedModels(Answer):
    data: list[LoadedModel]
