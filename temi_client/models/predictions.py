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


class FormTrial(Answer):
    """One way to compute features, as it did on the server."""

    form: str
    agreement: float | None = None
    alone_ms: float | None = None
    batched_ms: float | None = None
    refused: str | None = None


class LoadedModel(Answer):
    model: ModelRef
    form: str
    sample: int
    trials: list[FormTrial] = Field(default_factory=list)


class LoadedModels(Answer):
    data: list[LoadedModel]
