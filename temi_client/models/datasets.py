"""Datasets, images, labels and uploads."""

from datetime import datetime
from typing import Any

from pydantic import Field

from temi_client.models.base import ApiModel, ErrorInfo
from temi_client.models.registry import ModelRef


class Dataset(ApiModel):
    id: str
    name: str
    status: str
    fingerprint: str | None = None
    image_count: int = 0
    issue_count: int = 0
    skipped_count: int = 0  # files that are not images
    skipped: dict[str, int] = Field(default_factory=dict)  # by suffix
    labeled_count: int = 0
    bytes: int = 0
    error: ErrorInfo | None = None
    current_clustering_id: str | None = None  # gives the labels
    created_at: datetime
    updated_at: datetime | None = None


class CurrentClusteringChange(ApiModel):
    """A change of the clustering that gives a dataset its labels."""

    number: int
    kind: str  # first, set, rollback or delete
    before: str | None = None
    clustering_id: str | None = None
    changed_by: str | None = None  # name of the API key
    changed_at: datetime


class Image(ApiModel):
    id: str
    dataset_id: str | None = None
    name: str
    sha256: str
    width: int
    height: int
    format: str
    bytes: int
    label: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


class DatasetIssue(ApiModel):
    id: str
    name: str
    code: str
    detail: str


class Duplicate(ApiModel):
    """A duplicate of an earlier image."""

    image_id: str
    name: str | None = None
    original_id: str
    original_name: str | None = None
    kind: str
    similarity: float


class LabelRow(ApiModel):
    """One row of a dataset's labels."""

    image_id: str
    name: str
    cluster_id: int | None = None
    label: str | None = None
    probability: float | None = None
    excluded: bool = False
    true_label: str | None = None


class ImageLabel(ApiModel):
    """The label of an image in one clustering."""

    clustering_id: str
    dataset_id: str | None = None
    revision: int | None = None
    current: bool = False  # whether it is the current clustering of the dataset
    cluster_id: int | None = None
    label: str | None = None
    probability: float
    excluded: bool = False
    model: ModelRef | None = None


class Upload(ApiModel):
    """A resumable upload: `offset` of its `length` bytes have arrived."""

    id: str
    offset: int
    length: int
    expires_at: datetime | None = None


class UploadLimits(ApiModel):
    max_bytes: int
    extensions: list[str]  # of tus 1.0


class Neighbor(ApiModel):
    """An image that is similar to another."""

    image_id: str
    name: str
    similarity: float  # the cosine of the features


class Neighbors(ApiModel):
    data: list[Neighbor]


class FoundImage(Neighbor):
    """An image that a search has found."""

    cluster_id: int | None = None  # None if it is excluded, or there is no clustering
    label: str | None = None  # of the cluster


class SearchResults(ApiModel):
    dataset_id: str
    clustering_id: str | None = None  # whose features were compared
    data: list[FoundImage]  # most similar first
