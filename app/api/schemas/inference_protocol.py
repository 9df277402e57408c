"""The Open Inference Protocol, version 2; the protocol defines names and types."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Datatype = Literal["BYTES", "FP32", "INT64"]
InputName = Literal["images", "embeddings"]
OutputName = Literal[
    "cluster_id", "label", "probability", "probabilities", "error", "raw_probability", "novelty"
]
Dimension = Annotated[int, Field(ge=0, le=2**63 - 1)]
_MAX_MICROSECONDS = 3600 * 10**6


class ServerMetadata(BaseModel):
    name: str
    version: str
    extensions: list[str]


class ServerLive(BaseModel):
    live: bool


class ServerReady(BaseModel):
    ready: bool
    error: str | None = Field(
        default=None, description="The failed checks; `/readyz` has the details."
    )


class TensorMetadata(BaseModel):
    name: str
    datatype: Datatype
    shape: list[int] = Field(description="-1 where the request decides the length.")


class ModelParameters(BaseModel):
    version: str = Field(description="The version that the reference means now.")
    backbone: str
    feature_dim: int
    n_clusters: int
    labels: list[str] = Field(description="Labels of the columns of `probabilities`.")


class ModelMetadata(BaseModel):
    name: str
    versions: list[str]
    platform: Literal["temi"] = "temi"
    inputs: list[TensorMetadata] = Field(description="A request contains exactly one of them.")
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
        description="Instead of `data`: the number of bytes of the tensor after the JSON.",
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
        description="Images in base64, or numbers as rows or as one flat list.",
    )


class InferOutputParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")  # an unknown parameter must not be ignored

    binary_data: bool | None = None


class InferOutput(BaseModel):
    name: OutputName
    parameters: InferOutputParameters | None = None


class InferParameters(BaseModel):
    binary_data_output: bool = Field(
        default=False, description="Use binary tensors for outputs without `binary_data`."
    )
    timeout: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_MICROSECONDS,
        description="Microseconds; the server may have a shorter limit.",
    )
    false_alarm_rate: float | None = Field(
        default=None, gt=0, lt=1, description="As of `:predict`: novel images get cluster -1."
    )


class InferRequest(BaseModel):
    id: str | None = Field(default=None, max_length=1000, description="Returned in the response.")
    parameters: InferParameters | None = None
    inputs: list[InferInput] = Field(min_length=1, max_length=1)
    outputs: list[InferOutput] | None = Field(
        default=None, max_length=100, description="The outputs of the response; by default all."
    )


class InferResponseParameters(BaseModel):
    binary_data_size: int


class InferResponseOutput(BaseModel):
    name: OutputName
    datatype: Datatype
    shape: list[int]
    parameters: InferResponseParameters | None = None
    data: list[Any] | None = None


class InferResponse(BaseModel):
    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferResponseOutput]
