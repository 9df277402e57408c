"""Two versions of a model side by side."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Difference(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    path: str = Field(examples=["config.n_heads"])
    left: Any = Field(description="Null where the left version has no such entry.")
    right: Any = Field(description="Null where the right version has no such entry.")


class Movement(BaseModel):
    """Images of a left cluster that are not in the right cluster that matches it best."""

    model_config = ConfigDict(from_attributes=True)

    left_cluster_id: int
    left_label: str
    right_cluster_id: int
    right_label: str
    images: int


class Agreement(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    dataset_id: str
    left_clustering_id: str
    right_clustering_id: str
    images: int = Field(description="In both clusterings; without any, the scores are null.")
    same_cluster: float | None = Field(
        description="Share of images that stay, with each cluster matched to at most one other."
    )
    adjusted_rand_index: float | None
    normalized_mutual_information: float | None
    movements: list[Movement] = Field(description="The 50 largest, largest first.")


class Comparison(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    name: str
    left: int
    right: int
    configuration: list[Difference] = Field(description="What differs in the manifests.")
    metrics: list[Difference] = Field(description="All metrics of both, each on its own dataset.")
    cluster_names: list[Difference] = Field(
        description="Clusters that are called differently now; the path is the number."
    )
    assignments: Agreement
