"""Clusterings."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from app.api.schemas.common import shown_fields
from app.api.schemas.models import ModelRef
from app.core.clusterings import hierarchy, name_suggestions, rows, similarity, splitting
from app.core.clusterings import statistics as cluster_statistics
from app.core.platform import tables

NameSource = Literal["vocabulary", "classifier", "files"]
_BINS = 20


class Clustering(BaseModel):
    id: str = Field(examples=["cl_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    job_id: str | None = Field(description="Null after the job was deleted.")
    dataset_id: str
    model: ModelRef
    n_clusters: int = Field(description="Clusters of this revision, without merged ones.")
    image_count: int
    revision: int = Field(description="Increases with every operation; also the ETag.")
    undo: int | None = Field(
        description="Revision of the operation that `undo` would revert; null if there is none."
    )
    redo: int | None = Field(
        description="Revision of the operation that `redo` would do again; null if there is none."
    )
    metrics: dict[str, Any] = Field(
        description="`temi` and `kmeans` compare with the labels of the images, if they have any."
    )
    created_at: datetime

    @classmethod
    def of(cls, row: tables.Clustering, undo: int | None, redo: int | None) -> "Clustering":
        return cls(
            **shown_fields(cls, row),
            undo=undo,
            redo=redo,
            model=ModelRef(name=row.model_name, version=row.model_version),
        )


class Example(BaseModel):
    image_id: str
    name: str
    probability: float

    @classmethod
    def of(cls, example: rows.Example) -> "Example":
        return cls(**example._asdict())


class Cluster(BaseModel):
    cluster_id: int
    label: str
    named: bool = Field(
        description="Whether a person gave the label; false for `cluster 3` and the parts of a "
        "split."
    )
    size: int
    mean_probability: float | None = Field(description="Null if the cluster is empty.")
    examples: list[Example] = Field(description="The images with the highest probability.")

    @classmethod
    def of(cls, row: tables.Cluster, examples: Sequence[rows.Example]) -> "Cluster":
        shown = [Example.of(example) for example in examples]
        return cls(**shown_fields(cls, row), examples=shown)


class PreviewedPart(BaseModel):
    part: int = Field(description="The number for `leave` of the split; 0 is the largest.")
    size: int
    examples: list[Example] = Field(description="The images closest to the center of the part.")

    @classmethod
    def of(cls, number: int, part: splitting.PreviewedPart) -> "PreviewedPart":
        return cls(part=number, size=part.size, examples=[Example.of(one) for one in part.examples])


class SplitPreview(BaseModel):
    """The parts that a split of a cluster would make."""

    revision: int = Field(description="Revision of the clustering, for `If-Match` of the split.")
    parts: list[PreviewedPart] = Field(description="Largest first.")

    @classmethod
    def of(cls, found: splitting.SplitPreview) -> "SplitPreview":
        parts = [PreviewedPart.of(number, part) for number, part in enumerate(found.parts)]
        return cls(revision=found.revision, parts=parts)


class RankedImage(BaseModel):
    image_id: str
    name: str
    probability: float = Field(description="Probability of the cluster that the model chose.")
    margin: float = Field(description="Difference to the second most probable cluster.")
    distance: float = Field(description="Distance to the center of the cluster: 1 - cosine.")
    similarity: float | None = Field(description="Cosine with `similar_to`, if it was given.")

    @classmethod
    def of(
        cls, row: tables.Assignment, name: str, similarity: float | None = None
    ) -> "RankedImage":
        return cls(**shown_fields(cls, row), name=name, similarity=similarity)


class SimilarCluster(BaseModel):
    cluster_id: int
    label: str
    size: int
    similarity: float = Field(description="Cosine of the mean features of the two clusters.")


class SimilarClusters(BaseModel):
    revision: int
    data: list[SimilarCluster]

    @classmethod
    def of(cls, found: similarity.SimilarClusters) -> "SimilarClusters":
        data = [SimilarCluster(**cluster._asdict()) for cluster in found.clusters]
        return cls(revision=found.revision, data=data)


class NameSuggestion(BaseModel):
    name: str
    score: float = Field(
        description="From 0 to 1: how far it applies to the cluster and not to those nearest to it."
    )
    sources: list[NameSource] = Field(
        description="`vocabulary`: words compared with the features, by a backbone that was "
        "trained on images and texts; `classifier`: classes of ImageNet, by a backbone that was "
        "trained on them; `files`: file and folder names and metadata."
    )


class ClusterNames(BaseModel):
    cluster_id: int
    label: str = Field(description="The current name.")
    suggestions: list[NameSuggestion] = Field(description="Up to three, best first.")


class NameSuggestions(BaseModel):
    revision: int
    data: list[ClusterNames]

    @classmethod
    def of(cls, found: name_suggestions.NameSuggestions) -> "NameSuggestions":
        data = [ClusterNames.model_validate(asdict(cluster)) for cluster in found.clusters]
        return cls(revision=found.revision, data=data)


class ClusterGroup(BaseModel):
    cluster_ids: list[int] = Field(
        description="Those that a person has named first, then the largest first. The operation "
        "`merge` with the first as `into` makes them one cluster with this label."
    )
    size: int = Field(description="Images of all these clusters.")
    label: str = Field(description="Label of the first cluster.")


class Hierarchy(BaseModel):
    """The clusters of a clustering in fewer groups."""

    revision: int
    n_groups: int
    groups: list[ClusterGroup] = Field(description="Largest first.")
    costs: list[float] = Field(
        description="Cost of each merge, from single clusters to one group: a large step marks "
        "groups that differ. The first ones, as many as there are clusters less `n_groups`, made "
        "these groups."
    )

    @classmethod
    def of(cls, found: hierarchy.Hierarchy) -> "Hierarchy":
        groups = [ClusterGroup(**group._asdict()) for group in found.groups]
        return cls(revision=found.revision, n_groups=len(groups), groups=groups, costs=found.costs)


class Assignment(BaseModel):
    image_id: str
    name: str
    cluster_id: int | None = Field(description="Null if the image was excluded.")
    label: str | None = Field(description="The cluster's name.")
    probability: float
    excluded: bool

    @classmethod
    def of(cls, row: tables.Assignment, name: str, label: str | None) -> "Assignment":
        excluded = row.cluster_id == tables.EXCLUDED
        return cls(
            image_id=row.image_id,
            name=name,
            cluster_id=None if excluded else row.cluster_id,
            label=label,
            probability=row.probability,
            excluded=excluded,
        )


class ImageLabel(BaseModel):
    """The label of an image in a clustering."""

    clustering_id: str
    dataset_id: str
    revision: int
    current: bool = Field(description="Whether it is the current clustering of the dataset.")
    cluster_id: int | None = Field(description="Null if the image was excluded.")
    label: str | None
    probability: float
    excluded: bool
    model: ModelRef

    @classmethod
    def of(
        cls, row: tables.Assignment, clustering: tables.Clustering, label: str | None, current: bool
    ) -> "ImageLabel":
        excluded = row.cluster_id == tables.EXCLUDED
        return cls(
            clustering_id=clustering.id,
            dataset_id=clustering.dataset_id,
            revision=clustering.revision,
            current=current,
            cluster_id=None if excluded else row.cluster_id,
            label=label,
            probability=row.probability,
            excluded=excluded,
            model=ModelRef(name=clustering.model_name, version=clustering.model_version),
        )


class Histogram(BaseModel):
    edges: list[float] = Field(description="One more than `counts`.")
    counts: list[int]


class Statistics(BaseModel):
    """Statistics of the images that are not excluded."""

    revision: int
    images: int
    excluded_images: int
    clusters: int
    empty_clusters: int
    mean_probability: float | None = Field(description="Null without images.")
    median_probability: float | None = Field(description="Accurate to 0.0005.")
    probabilities: Histogram
    size_kl: float | None = Field(description="KL divergence from equal sizes: 0 if all are equal.")
    sizes: list[int] = Field(description="Sizes of all clusters, largest first.")
    size_histogram: Histogram

    @classmethod
    def of(cls, found: cluster_statistics.Statistics) -> "Statistics":
        counts, edges = np.histogram(found.sizes, bins=_BINS, range=(0, max([*found.sizes, 1])))
        return cls(
            **shown_fields(cls, found),
            probabilities=Histogram(
                edges=[round(number / _BINS, 4) for number in range(_BINS + 1)],
                counts=cluster_statistics.rebinned(found.probability_counts, _BINS),
            ),
            size_histogram=Histogram(edges=edges.tolist(), counts=counts.tolist()),
        )
