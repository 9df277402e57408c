"""Labels for new images."""

from pydantic import BaseModel, Field

from app.api.schemas.common import ErrorInfo
from app.api.schemas.models import ModelRef


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
