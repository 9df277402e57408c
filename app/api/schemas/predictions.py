"""Labels for new images."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.schemas.common import ErrorInfo
from app.api.schemas.models import ModelRef

_IMAGE = "img_01k9z3m4q5r6s7t8v9w0x1y2z3"
_DATASET = "ds_01k9z3m4q5r6s7t8v9w0x1y2z3"


class PredictOptions(BaseModel):
    """In the query of a request."""

    top_k: int = Field(default=3, ge=1, le=100, description="Likeliest clusters to list.")
    probabilities: bool = Field(
        default=False, description="List the probability of every cluster, too."
    )
    deadline_seconds: float | None = Field(
        default=None,
        gt=0,
        le=3600,
        description="Give up after this time; the server may be stricter.",
    )


_Features = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(fail_fast=True)]


class PredictBody(BaseModel):
    """One of the three."""

    model_config = ConfigDict(extra="forbid")

    # The first mistake ends the check: a million of them would take far more room than the body.
    image_ids: (
        Annotated[list[Annotated[str, Field(max_length=40)]], Field(fail_fast=True)] | None
    ) = Field(
        default=None, min_length=1, description="Images of your datasets.", examples=[[_IMAGE]]
    )
    dataset_id: str | None = Field(
        default=None,
        max_length=40,
        description="Every image of a dataset: answers 202 with a job.",
        examples=[_DATASET],
    )
    embeddings: Annotated[list[_Features], Field(fail_fast=True)] | None = Field(
        default=None,
        min_length=1,
        description="Features of the model's own backbone, as long as its `feature_dim`.",
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> "PredictBody":
        given = [v for v in (self.image_ids, self.dataset_id, self.embeddings) if v is not None]
        if len(given) != 1:
            raise ValueError("send one of image_ids, dataset_id and embeddings")
        return self


class ClusterProbability(BaseModel):
    cluster_id: int
    label: str
    probability: float


class Prediction(BaseModel):
    image: str = Field(
        description="The file's name in the request, the image's id, or the embedding's number."
    )
    cluster_id: int | None
    label: str | None = Field(description="What people call the cluster now.")
    probability: float | None
    top_k: list[ClusterProbability]
    probabilities: list[float] | None = Field(
        default=None, description="Of every cluster, if asked for."
    )
    error: ErrorInfo | None = Field(description="Why this one image could not be read.")


class Predictions(BaseModel):
    model: ModelRef
    data: list[Prediction]


class LoadedModel(BaseModel):
    model: ModelRef
    backend: str = Field(
        description="What computes its features: `onnx` on a CPU, `torch` on a GPU and for "
        "backbones that ONNX Runtime cannot run.",
        examples=["onnx"],
    )
    precision: str = Field(description="As declared by the model.", examples=["float32"])


class Serving(BaseModel):
    data: list[LoadedModel]
