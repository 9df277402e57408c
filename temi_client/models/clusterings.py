"""Clusterings, their clusters, edits and exports."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from temi_client.models.base import ApiModel
from temi_client.models.registry import ModelRef


class Clustering(ApiModel):
    id: str
    job_id: str | None = None  # None after the job was deleted
    dataset_id: str
    model: ModelRef
    n_clusters: int  # of this revision, without merged ones
    image_count: int
    revision: int
    undo: int | None = None  # the revision that undo would revert
    redo: int | None = None  # the revision that redo would do again
    metrics: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime


class Example(ApiModel):
    image_id: str
    name: str
    probability: float


class Cluster(ApiModel):
    cluster_id: int
    label: str
    named: bool = False  # a person gave the label
    size: int
    mean_probability: float | None = None  # None if the cluster is empty
    examples: list[Example] = Field(default_factory=list)


class PreviewedPart(ApiModel):
    part: int  # the number for `leave` of the split; 0 is the largest
    size: int
    examples: list[Example] = Field(default_factory=list)  # closest to its center


class SplitPreview(ApiModel):
    """The parts that a split of a cluster would make, largest first."""

    revision: int
    parts: list[PreviewedPart]


class Assignment(ApiModel):
    image_id: str
    name: str
    cluster_id: int | None = None  # None if the image is excluded
    label: str | None = None
    probability: float
    excluded: bool = False


class RankedImage(ApiModel):
    """An image of a cluster with its probability, margin and distance."""

    image_id: str
    name: str
    probability: float
    margin: float  # to the second most probable cluster; small for borderline images
    distance: float  # to the center of the cluster
    similarity: float | None = None  # to the image `similar_to`


class SimilarCluster(ApiModel):
    cluster_id: int
    label: str
    size: int
    similarity: float  # the cosine of the mean features


class SimilarClusters(ApiModel):
    revision: int
    data: list[SimilarCluster]


class NameSuggestion(ApiModel):
    name: str
    score: float  # how far it applies to the cluster and not to those nearest to it, up to 1
    sources: list[str]  # vocabulary, classifier, files


class ClusterNames(ApiModel):
    cluster_id: int
    label: str  # the current name
    suggestions: list[NameSuggestion]  # best first


class NameSuggestions(ApiModel):
    revision: int
    data: list[ClusterNames]


class ClusterGroup(ApiModel):
    cluster_ids: list[int]  # those that a person has named first, then the largest first
    size: int
    label: str  # of the first


class Hierarchy(ApiModel):
    """The clusters of a clustering in fewer groups, largest first."""

    revision: int
    n_groups: int
    groups: list[ClusterGroup]
    costs: list[float] = Field(default_factory=list)  # of each merge, from clusters to one group


class Histogram(ApiModel):
    edges: list[float]  # one more than counts
    counts: list[int]


class Statistics(ApiModel):
    """Probabilities and cluster sizes of a clustering."""

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


class Selection(ApiModel):
    """All images of a cluster, or those of them in a range of probabilities."""

    model_config = ConfigDict(extra="forbid")  # you make it: a misspelled field is an error

    cluster_id: int
    min_probability: float | None = None
    max_probability: float | None = None
    except_image_ids: list[str] = Field(default_factory=list)


class OperationWarning(ApiModel):
    code: str
    detail: str
    cluster_ids: list[int] = Field(default_factory=list)


class Operation(ApiModel):
    """An edit of a clustering; it created `revision`."""

    revision: int
    kind: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    moved: int = 0  # images
    new_cluster_ids: list[int] = Field(default_factory=list)
    undoes: int | None = None
    undone_by: int | None = None
    created_by: str | None = None  # name of the API key
    created_at: datetime
    warnings: list[OperationWarning] = Field(default_factory=list)  # of a new operation


class Export(ApiModel):
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
