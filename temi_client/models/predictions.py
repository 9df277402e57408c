"""Predictions and loaded models."""

from pydantic import Field

from temi_client.models.base import ApiModel, ErrorInfo
from temi_client.models.datasets import Neighbor
from temi_client.models.registry import ModelRef


class ClusterProbability(ApiModel):
    cluster_id: int
    label: str
    probability: float


class Prediction(ApiModel):
    image: str
    cluster_id: int | None = None
    label: str | None = None
    probability: float | None = None  # calibrated
    raw_probability: float | None = None  # of the model itself
    novelty: float | None = None  # share of the training images that are less unusual
    top_k: list[ClusterProbability] = Field(default_factory=list)
    probabilities: list[float] | None = None  # of every cluster, if requested
    neighbors: list[Neighbor] | None = None  # of the training, if requested
    error: ErrorInfo | None = None


class Predictions(ApiModel):
    model: ModelRef
    data: list[Prediction]


class LoadedModel(ApiModel):
    model: ModelRef
    backend: str  # of the backbone: onnx or torch
    precision: str


class LoadedModels(ApiModel):
    data: list[LoadedModel]
