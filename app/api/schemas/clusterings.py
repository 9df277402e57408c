"""Clusterings."""

from datetime import datetime
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from app.api.schemas.common import shown_fields
from app.api.schemas.models import ModelRef
from app.core.clusterings import statistics as cluster_statistics
from app.core.platform import tables

_BINS = 20


class Clustering(BaseModel):
    id: str = Field(examples=["cl_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    job_id: str | None = Field(description="Null after the job was deleted.")
    dataset_id: str
    model: ModelRef
    n_clusters: int = Field(description="Clusters of this revision, without merged ones.")
    image_count: int
    revision: int = Field(description="Increases with every operation; also the ETag.")
    metrics: dict[str, Any] = Field(
        description="`temi` and `kmeans` compare with the labels of the images, if they have any."
    )
    created_at: datetime

    @classmethod
    def of(cls, row: tables.Clustering) -> "Clustering":
        return cls(
            **shown_fields(cls, row),
            model=ModelRef(name=row.model_name, version=row.model_version),
        )


class Example(BaseModel):
    image_id: str
    name: str
    probability: float


class Cluster(BaseModel):
    cluster_id: int
    label: str
    size: int
    mean_probability: float | None = Field(description="Null if the cluster is empty.")
    examples: list[Example] = Field(description="The images with the highest probability.")

    @classmethod
    def of(
        cls, row: tables.Cluster, examples: "list[tuple[tables.Assignment, tables.Image]]"
    ) -> "Cluster":
        shown = [
            Example(image_id=image.id, name=image.name, probability=assignment.probability)
            for assignment, image in examples
        ]
        return cls(**shown_fields(cls, row), examples=shown)


class RankedImage(BaseModel):
    image_id: str
    name: str
    probability: float = Field(description="Probability of the cluster that the model chose.")
    margin: float = Field(description="Difference to the second most probable cluster.")
    distance: float = Field(description="Distance to the center of the cluster: 1 - cosine.")

    @classmethod
    def of(cls, row: tables.Assignment, name: str) -> "RankedImage":
        return cls(**shown_fields(cls, row), name=name)


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
