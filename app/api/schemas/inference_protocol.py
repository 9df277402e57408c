"""The Open Inference Protocol, version 2: names and forms are the protocol's, not ours."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Datatype = Literal["BYTES", "FP32", "INT64"]
InputName = Literal["images", "embeddings"]
OutputName = Literal["cluster_id", "label", "probability", "probabilities", "error"]
Dimension = Annotated[int, Field(ge=0, le=2**63 - 1)]
_MOST_MICROSECONDS = 3600 * 10**6


class ServerMetadata(BaseModel):
    name: str
    version: str
    extensions: list[str]


class ServerLive(BaseModel):
    live: bool


class ServerReady(BaseModel):
    ready: bool
    error: str | None = Field(default=None, description="What is missing; `/readyz` says more.")


class TensorMetadata(BaseModel):
    name: str
    datatype: Datatype
    shape: list[int] = Field(description="-1 where the length is the request's.")


class ModelParameters(BaseModel):
    version: str = Field(description="The one that this address stands for now.")
    backbone: str
    feature_dim: int
    n_clusters: int
    labels: list[str] = Field(description="Of the columns of `probabilities`.")


class ModelMetadata(BaseModel):
    name: str
    versions: list[str]
    platform: Literal["temi"] = "temi"
    inputs: list[TensorMetadata] = Field(description="A request has exactly one of them.")
    outputs: list[TensorMetadata]
    parameters: ModelParameters


class ModelReady(BaseModel):
    name: str
    ready: bool


class InferInputParameters(BaseModel):
    binary_data_size: int | None = Field(
        default=None,
        ge=0,
        strict=True,
        description="Instead of `data`: so many bytes after the JSON are the tensor.",
    )


class InferInput(BaseModel):
    name: InputName
    datatype: Datatype = Field(description="`BYTES` for images, `FP32` for embeddings.")
    shape: list[Dimension] = Field(
        max_length=8, description="[n] for images, [n, feature_dim] for embeddings."
    )
    parameters: InferInputParameters | None = None
    data: list[Any] | None = Field(
        default=None,
        description="Images as base64, or numbers, row by row or as one flat list.",
    )


class InferOutputParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")  # what changes an answer must not be passed over

    binary_data: bool | None = None


class InferOutput(BaseModel):
    name: OutputName
    parameters: InferOutputParameters | None = None


class InferParameters(BaseModel):
    binary_data_output: bool = Field(
        default=False, description="Answer with binary tensors where `outputs` does not say."
    )
    timeout: int | None = Field(
        default=None,
        ge=0,
        le=_MOST_MICROSECONDS,
        description="Microseconds to give up after; the server may be stricter.",
    )


class InferRequest(BaseModel):
    id: str | None = Field(default=None, max_length=1000, description="Comes back as it is.")
    parameters: InferParameters | None = None
    inputs: list[InferInput] = Field(min_length=1, max_length=1)
    outputs: list[InferOutput] | None = Field(
        default=None, max_length=100, description="The outputs to answer with; all if left out."
    )


class InferAnswerParameters(BaseModel):
    binary_data_size: int


class InferAnswerOutput(BaseModel):
    name: OutputName
    datatype: Datatype
    shape: list[int]
    parameters: InferAnswerParameters | None = None
    data: list[Any] | None = None


class InferAnswer(BaseModel):
    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferAnswerOutput]
