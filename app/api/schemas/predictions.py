"""Predictions."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.schemas.common import ErrorInfo
from app.api.schemas.datasets import Neighbor
from app.api.schemas.models import ModelRef

_IMAGE = "img_01k9z3m4q5r6s7t8v9w0x1y2z3"
_DATASET = "ds_01k9z3m4q5r6s7t8v9w0x1y2z3"


class PredictOptions(BaseModel):
    """Query parameters of `:predict`."""

    top_k: int = Field(
        default=3, ge=1, le=100, description="Number of most probable clusters to list."
    )
    probabilities: bool = Field(
        default=False, description="List the probabilities of all clusters, too."
    )
    false_alarm_rate: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Answer `none of these` for images that are unlike those of the training; "
        "this share of known images is refused by mistake. By default every image gets a cluster.",
        examples=[0.01],
    )
    keep: bool = Field(
        default=True,
        description="False: the server does not keep refused images of this request, even if it "
        "is set to keep them (`TEMI_KEEP_REFUSED`).",
    )
    neighbors: int = Field(
        default=0,
        ge=0,
        le=50,
        description="Number of most similar images of the training to list.",
    )
    deadline_seconds: float | None = Field(
        default=None,
        gt=0,
        le=3600,
        description="Time limit; the server may have a shorter one.",
    )


_Features = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(fail_fast=True)]


class PredictBody(BaseModel):
    """Exactly one of the three fields."""

    model_config = ConfigDict(extra="forbid")

    # Stops at the first error: a million errors would take far more memory than the body.
    image_ids: (
        Annotated[list[Annotated[str, Field(max_length=40)]], Field(fail_fast=True)] | None
    ) = Field(
        default=None, min_length=1, description="Images of your datasets.", examples=[[_IMAGE]]
    )
    dataset_id: str | None = Field(
        default=None,
        max_length=40,
        description="All images of a dataset; the response is 202 with a job.",
        examples=[_DATASET],
    )
    embeddings: Annotated[list[_Features], Field(fail_fast=True)] | None = Field(
        default=None,
        min_length=1,
        description="Features of the model's backbone, each with `feature_dim` numbers.",
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
    image: str = Field(description="File name in the request, image id, or index of the embedding.")
    cluster_id: int | None
    label: str | None = Field(
        description="The current name of the cluster; `none of these` if the image is novel."
    )
    novelty: float | None = Field(
        default=None,
        description="Share of the training images that are less unusual than this image; null if "
        "the version is older than this score.",
    )
    probability: float | None = Field(
        description="Calibrated: of labels with this probability, this share is right."
    )
    raw_probability: float | None = Field(
        default=None, description="Of the model itself, before the calibration."
    )
    top_k: list[ClusterProbability]
    probabilities: list[float] | None = Field(
        default=None, description="Probabilities of all clusters, if requested."
    )
    neighbors: list[Neighbor] | None = Field(
        default=None,
        description="The nearest images of the dataset that the version was trained on, if "
        "requested; null if their features are gone.",
    )
    error: ErrorInfo | None = Field(description="Why the image could not be read.")


class Predictions(BaseModel):
    model: ModelRef
    data: list[Prediction]


class LoadedModel(BaseModel):
    model: ModelRef
    backend: str = Field(
        description="Inference backend: `onnx` on a CPU, `torch` on a GPU and for "
        "backbones that ONNX Runtime cannot run.",
        examples=["onnx"],
    )
    precision: str = Field(description="Precision of the model.", examples=["float32"])


class Serving(BaseModel):
    data: list[LoadedModel]
