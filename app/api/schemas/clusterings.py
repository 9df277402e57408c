"""Clusterings."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from app.api.schemas.common import shown_fields
from app.api.schemas.models import ModelRef
from app.core import tables


class Clustering(BaseModel):
    id: str = Field(examples=["cl_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    job_id: str | None = Field(description="Null once the job was deleted.")
    dataset_id: str
    model: ModelRef
    n_clusters: int
    image_count: int
    revision: int
    metrics: dict[str, Any] = Field(
        description="`temi` and `kmeans` compare with labels where the images have some."
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
    examples: list[Example] = Field(description="Its surest images.")

    @classmethod
    def of(
        cls, row: tables.Cluster, examples: "list[tuple[tables.Assignment, tables.Image]]"
    ) -> "Cluster":
        shown = [
            Example(image_id=image.id, name=image.name, probability=assignment.probability)
            for assignment, image in examples
        ]
        return cls(**shown_fields(cls, row), examples=shown)


class Assignment(BaseModel):
    image_id: str
    name: str
    cluster_id: int
    label: str = Field(description="The cluster's name.")
    probability: float

    @classmethod
    def of(cls, row: tables.Assignment, name: str, label: str) -> "Assignment":
        return cls(**shown_fields(cls, row), name=name, label=label)
