"""Datasets, images, issues and duplicates."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.common import ErrorInfo, shown_fields
from app.core.datasets import neighbors
from app.core.platform import tables

DuplicateKind = Literal["exact", "near"]


class Dataset(BaseModel):
    id: str = Field(examples=["ds_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    name: str
    status: Literal["ingesting", "ready", "failed"]
    fingerprint: str | None = Field(description="Hash of the images and their order.")
    image_count: int
    issue_count: int = Field(description="Images that could not be read; see the list of issues.")
    skipped_count: int = Field(description="Files that are not images, such as sidecars.")
    skipped: dict[str, int] = Field(
        description="The skipped files by suffix, or as `system`, `no suffix` and `other`.",
        examples=[{".json": 120, ".mp4": 3}],
    )
    labeled_count: int
    bytes: int = Field(description="Bytes of the images.")
    current_clustering_id: str | None = Field(
        description="The clustering that gives the dataset its labels."
    )
    error: ErrorInfo | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: tables.Dataset) -> "Dataset":
        skipped = dict(sorted(row.skipped.items(), key=lambda item: (-item[1], item[0])))
        found = shown_fields(cls, row) | {"skipped": skipped}
        return cls(**found, skipped_count=sum(skipped.values()))


class CurrentClusteringUpdate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    clustering_id: str = Field(max_length=40, examples=["cl_01k9z3m4q5r6s7t8v9w0x1y2z3"])


class CurrentClusteringChange(BaseModel):
    number: int = Field(description="1, 2, ... without gaps.")
    kind: Literal["first", "set", "rollback", "delete"] = Field(
        description="`first`: the dataset had none. `delete`: the one before was deleted."
    )
    before: str | None = Field(description="The current clustering before the change.")
    clustering_id: str | None = Field(description="The current clustering after the change.")
    changed_by: str | None = Field(description="Name of the API key; null if no key was required.")
    changed_at: datetime

    @classmethod
    def of(cls, row: tables.CurrentClusteringChange) -> "CurrentClusteringChange":
        return cls(**shown_fields(cls, row))


class Image(BaseModel):
    id: str = Field(examples=["img_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    dataset_id: str
    name: str = Field(description="File name in the upload.")
    sha256: str
    width: int
    height: int
    format: str
    bytes: int
    label: str | None = Field(description="The label from the upload; used for metrics only.")
    metadata: dict[str, Any] = Field(description="Other columns of the manifest.")
    notes: list[str] = Field(
        description="What was changed to read it, such as dropped animation frames."
    )

    @classmethod
    def of(cls, row: tables.Image) -> "Image":
        return cls(**(shown_fields(cls, row) | {"metadata": row.attributes}))


class DatasetIssue(BaseModel):
    id: str
    name: str
    code: str = Field(examples=["image_undecodable"])
    detail: str

    @classmethod
    def of(cls, row: tables.DatasetIssue) -> "DatasetIssue":
        return cls(**shown_fields(cls, row))


class Duplicate(BaseModel):
    image_id: str
    name: str
    original_id: str = Field(description="The first image of the dataset with the same content.")
    original_name: str
    kind: DuplicateKind = Field(
        description="`exact`: the same bytes. `near`: nearly the same embedding."
    )
    similarity: float = Field(description="1 if exact, otherwise the cosine of the two embeddings.")

    @classmethod
    def of(cls, row: tables.Duplicate, name: str, original_name: str) -> "Duplicate":
        return cls(**shown_fields(cls, row), name=name, original_name=original_name)


DatasetName = Annotated[str, Field(min_length=1, max_length=200, examples=["Holiday"])]
ImageId = Annotated[str, Field(max_length=40, examples=["img_01k9z3m4q5r6s7t8v9w0x1y2z3"])]


class DatasetPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: DatasetName


class ImageDeletion(BaseModel):
    model_config = ConfigDict(extra="forbid")

    image_ids: list[ImageId] = Field(min_length=1, max_length=10_000)


class Neighbor(BaseModel):
    """An image that is similar to another."""

    image_id: str
    name: str
    similarity: float = Field(description="Cosine of the features: 1 if they are equal.")

    @classmethod
    def of(cls, found: neighbors.Neighbor) -> "Neighbor":
        return cls(**found._asdict())


class Neighbors(BaseModel):
    data: list[Neighbor]
