"""Models, their versions and aliases."""

from datetime import date, datetime
from typing import Any

from pydantic import Field

from temi_client.models.base import ApiModel


class ModelRef(ApiModel):
    name: str
    version: int


class Model(ApiModel):
    name: str
    latest_version: int
    aliases: dict[str, int] = Field(default_factory=dict)
    created_at: datetime


class ModelVersion(ApiModel):
    name: str
    version: int
    clustering_id: str | None = None
    job_id: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    manifest: dict[str, Any] = Field(default_factory=dict)
    has_text_encoder: bool = False  # whether images can be searched by a text
    created_at: datetime


class Calibration(ApiModel):
    """A map of a version's probabilities that was fitted to reviews."""

    number: int
    slope: float
    intercept: float
    reviews: int
    error_before: float
    error_after: float
    created_by: str | None = None  # name of the API key
    created_at: datetime


class ReliabilityBin(ApiModel):
    probability: float
    accuracy: float
    images: int


class Reliability(ApiModel):
    images: int
    error: float  # expected calibration error
    error_by_chance: float
    bins: list[ReliabilityBin] = Field(default_factory=list)


class CurrentCalibration(ApiModel):
    slope: float
    intercept: float
    source: str  # training or reviews
    number: int | None = None
    reliability: Reliability | None = None  # None without reviews


class DriftDay(ApiModel):
    day: date
    images: int
    novel: int  # more unusual than nine tenths of the training


class ClusterShare(ApiModel):
    cluster_id: int
    label: str
    images: int
    trained: int


class Drift(ApiModel):
    images: int
    verdict: str  # too_few, same, shifted or changed
    summary: str
    novelty: list[int]  # images by tenth
    novelty_shift: float | None = None
    probability: list[int]  # images by tenth
    clusters: list[ClusterShare] = Field(default_factory=list)
    cluster_shift: float | None = None
    days: list[DriftDay] = Field(default_factory=list)


class AliasChange(ApiModel):
    number: int  # over all aliases of the model
    alias: str
    kind: str  # set, rollback or remove
    before: int | None = None
    version: int | None = None
    changed_by: str | None = None  # name of the API key
    changed_at: datetime


class Difference(ApiModel):
    path: str
    left: Any = None
    right: Any = None


class Movement(ApiModel):
    left_cluster_id: int
    left_label: str
    right_cluster_id: int
    right_label: str
    images: int


class Agreement(ApiModel):
    dataset_id: str
    left_clustering_id: str
    right_clustering_id: str
    images: int
    same_cluster: float | None = None
    adjusted_rand_index: float | None = None
    normalized_mutual_information: float | None = None
    movements: list[Movement] = Field(default_factory=list)


class Comparison(ApiModel):
    name: str
    left: int
    right: int
    configuration: list[Difference] = Field(default_factory=list)
    metrics: list[Difference] = Field(default_factory=list)
    cluster_names: list[Difference] = Field(default_factory=list)
    assignments: Agreement
