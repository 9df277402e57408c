"""Requests and responses of Label Studio's machine learning backends; the names are theirs."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from app.api.schemas.common import ErrorInfo

_MAX_CONFIG = 1_000_000
_CONFIG = (
    '<View><Image name="image" value="$image"/><Choices name="cluster" toName="image">'
    '<Choice value="cluster 0"/><Choice value="cluster 1"/></Choices></View>'
)
LabelConfig = Annotated[str, Field(max_length=_MAX_CONFIG, examples=[_CONFIG])]


class LabelStudioSetup(BaseModel):
    # `schema`, as Label Studio calls it, is a method of pydantic's models.
    label_config: LabelConfig = Field(alias="schema", description="The labeling configuration.")


class LabelStudioVersion(BaseModel):
    model_version: str = Field(examples=["pets/versions/3"])


class LabelStudioHealth(BaseModel):
    status: str = Field(examples=["UP"])
    model_class: str = Field(examples=["TEMI"])
    model_version: str = Field(examples=["pets/versions/3"])


class LabelStudioTask(BaseModel):
    id: int | None = None
    data: dict[str, Any] = Field(examples=[{"image": "https://example.org/cat.jpg"}])


class LabelStudioTasks(BaseModel):
    tasks: Annotated[list[LabelStudioTask], Field(fail_fast=True)]
    label_config: LabelConfig


class LabelStudioPrediction(BaseModel):
    model_version: str
    score: float = Field(description="The probability of the cluster.")
    result: list[dict[str, Any]] = Field(description="One item of type `choices`, or none.")
    error: ErrorInfo | None = Field(default=None, description="Why there is no result.")


class LabelStudioPredictions(BaseModel):
    model_version: str
    results: list[LabelStudioPrediction] = Field(description="In the order of the tasks.")
