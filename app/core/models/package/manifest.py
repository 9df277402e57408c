"""The schema of a manifest: what is needed to use a model, and where it comes from."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.core.models.package import MANIFEST_FILE
from app.core.models.package.untrusted_json import parse_json
from app.core.platform.errors import ModelFileInvalid
from temi.calibration import MAX_INTERCEPT, MAX_SLOPE, MIN_SLOPE
from temi.config import Precision, TrainConfig
from temi.errors import InvalidConfig

_MAX_ERRORS = 5
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    # Fields of newer services are kept.
    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class Preprocessing(_Part):
    size: int = Field(ge=1, le=8192)
    resize: int = Field(ge=1, le=8192)
    interpolation: Literal["bilinear", "bicubic", "lanczos", "nearest"]
    mean: list[float] = Field(min_length=3, max_length=3)
    std: list[float] = Field(min_length=3, max_length=3)


class NamedCluster(_Part):
    cluster_id: int = Field(ge=0)
    label: str = Field(min_length=1, max_length=200)


class Origin(_Part):
    """A model version, perhaps of another service."""

    name: str = Field(max_length=100)
    version: int = Field(ge=1)


class TrainedOn(_Part):
    id: str | None = Field(max_length=40)
    fingerprint: str | None = Field(max_length=64)


class CalibrationMap(_Part):
    slope: float = Field(ge=MIN_SLOPE, le=MAX_SLOPE)
    intercept: float = Field(ge=-MAX_INTERCEPT, le=MAX_INTERCEPT)


class Manifest(_Part):
    format: Literal[1]
    model: Origin | None = None  # name and version in the exporting service
    backbone: str = Field(min_length=1, max_length=200)
    weights_sha256: Sha256
    preprocessing: Preprocessing
    precision: Precision  # of the backbone's matrix products
    feature_dim: int = Field(ge=1, le=1_000_000)
    n_clusters: int = Field(ge=2, le=1_000_000)
    temperature: float = Field(gt=0, le=1e6)
    calibration: CalibrationMap | None = None  # absent in versions that are older than it
    clusters: list[NamedCluster]
    config: dict[str, Any]
    seed: int
    metrics: dict[str, Any]
    dataset: TrainedOn
    packages: dict[str, str]
    finetuned_from: Origin | None = None
    finetune: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check_clusters(self) -> "Manifest":
        if [cluster.cluster_id for cluster in self.clusters] != list(range(self.n_clusters)):
            raise ValueError("clusters must be numbered 0, 1, ... up to n_clusters")
        if (trained := _read_config(self.config).n_clusters) != self.n_clusters:
            raise ValueError(f"config.n_clusters is {trained}, n_clusters is {self.n_clusters}")
        return self


def _read_config(values: dict[str, Any]) -> TrainConfig:
    try:
        return TrainConfig.from_dict(values)
    except (InvalidConfig, TypeError) as error:
        raise ValueError(f"config: {error}") from error


def parse_manifest(data: bytes) -> tuple[Manifest, dict[str, Any]]:
    """The parsed manifest, and its values for the registry."""
    values = parse_json(MANIFEST_FILE, data)
    try:
        return Manifest.model_validate(values), values
    except ValidationError as error:
        found = [_message(part["loc"], part["msg"]) for part in error.errors()[:_MAX_ERRORS]]
    raise ModelFileInvalid(f"{MANIFEST_FILE}: {'; '.join(found)}")


def _message(loc: tuple[int | str, ...], message: str) -> str:
    path = ".".join(map(str, loc))
    return f"{path}: {message}" if path else message.removeprefix("Value error, ")
