"""Clusterings, their clusters, edits and exports."""

from datetime import datetime
from typing import Any

from pydantic import Field

from temi_client.models.base import Answer
from temi_client.models.registry import ModelRef


class Clustering(Answer):
    id: str
    job_id: str | None = None  # none once the job was deleted
    dataset_id: str
    model: ModelRef
    n_clusters: int
    image_count: int
    revision: int
    metrics: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime


class Example(Answer):
    image_id: str
    name: str
    probability: float


class Cluster(Answer):
    cluster_id: int
    label: str
    size: int
    mean_probability: float | None = None  # none if the cluster is empty
    examples: list[Example] = Field(default_factory=list)


class Assignment(Answer):
    image_id: str
    name: str
    cluster_id: int | None = None  # none if the image was taken out
    label: str | None = None
    probability: float
    excluded: bool = False


class RankedImage(Answer):
    """An image of a cluster, and how well it fits."""

    image_id: str
    name: str
    probability: float
    margin: float  # to the second likeliest cluster: small at a border
    distance: float  # to the center of the cluster


class Histogram(Answer):
    edges: list[float]  # one more than counts
    counts: list[int]


class Statistics(Answer):
    """How sure a clustering is, and how even its clusters are."""

    revision: int
    images: int
    excluded_images: int = 0
    clusters: int
    empty_clusters: int = 0
    mean_probability: float | None = None
    median_probability: float | None = None
    probabilities: Histogram
    size_kl: float | None = None
    sizes: list[int] = Field(default_factory=list)
    size_histogram: Histogram


class Operation(Answer):
    """One step of the people who sort; it made `revision`."""

    revision: int
    kind: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    moved: int = 0  # images
    new_cluster_ids: list[int] = Field(default_factory=list)
    undoes: int | None = None
    undone_by: int | None = None
    created_at: datetime


class Export(Answer):
    id: str
    job_id: str | None = None
    clustering_id: str
    revision: int
    format: str
    filters: dict[str, Any] = Field(default_factory=dict)
    filename: str
    media_type: str
    image_count: int
    bytes: int
    sha256: str
    created_at: datetime
