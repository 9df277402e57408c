"""Models, their versions and aliases."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.common import shown_fields, to_time
from app.core.models.files import ModelFiles
from app.core.platform import tables
from temi import calibration
from temi.analysis import reliability as measured


class ModelRef(BaseModel):
    name: str
    version: int


class Model(BaseModel):
    name: str
    latest_version: int = Field(description="The newest version that is not deleted.")
    aliases: dict[str, int]
    created_at: datetime

    @classmethod
    def of(cls, row: tables.Model, aliases: Mapping[str, int]) -> "Model":
        assert row.latest_version is not None  # one without versions is not shown
        return cls(
            name=row.name,
            latest_version=row.latest_version,
            aliases=dict(aliases),
            created_at=to_time(row.created_at),
        )


class ModelVersion(BaseModel):
    name: str
    version: int
    clustering_id: str | None = Field(description="Null if the version was imported.")
    job_id: str | None = Field(
        description="Null if the version was imported or the job was deleted."
    )
    files: dict[str, str] = Field(description="SHA-256 of each file.")
    manifest: dict[str, Any]
    has_text_encoder: bool = Field(
        description="Whether images with features of its backbone can be searched by a text."
    )
    created_at: datetime

    @classmethod
    def of(cls, name: str, row: tables.ModelVersion) -> "ModelVersion":
        files = ModelFiles.of(row.folder, row.files, row.manifest)
        found = shown_fields(cls, row) | {"has_text_encoder": files.has_text_encoder}
        return cls(name=name, **found)


class Calibration(BaseModel):
    number: int = Field(description="1, 2, ... of the version.")
    slope: float
    intercept: float
    reviews: int = Field(description="Number of reviewed images that it was fitted to.")
    error_before: float = Field(
        description="Expected calibration error on these images with the calibration before."
    )
    error_after: float = Field(
        description="The same with this one; each image is judged by a fit to the others."
    )
    created_by: str | None = Field(description="Name of the API key; null if no key was required.")
    created_at: datetime

    @classmethod
    def of(cls, row: tables.ModelCalibration) -> "Calibration":
        return cls(**shown_fields(cls, row))


class ReliabilityBin(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    probability: float = Field(description="Mean calibrated probability of the images.")
    accuracy: float = Field(description="Share of the images whose label is right.")
    images: int


class Reliability(BaseModel):
    """What reviewed images say about the probabilities."""

    model_config = ConfigDict(from_attributes=True)

    images: int
    error: float = Field(
        description="Expected calibration error: the mean of |probability - accuracy|."
    )
    error_by_chance: float = Field(
        description="The error that perfect probabilities would show with so few images."
    )
    bins: list[ReliabilityBin] = Field(description="Tenths of the probability that have images.")


class CurrentCalibration(BaseModel):
    """The calibrated probability is sigmoid(slope * logit(p) + intercept)."""

    slope: float
    intercept: float
    source: Literal["training", "reviews"]
    number: int | None = Field(description="Of the calibration; null for that of the training.")
    reliability: Reliability | None = Field(description="Null without reviews.")

    @classmethod
    def of(
        cls,
        current: calibration.Calibration,
        row: tables.ModelCalibration | None,
        found: measured.Reliability | None,
    ) -> "CurrentCalibration":
        return cls(
            slope=current.slope,
            intercept=current.intercept,
            source="training" if row is None else "reviews",
            number=None if row is None else row.number,
            reliability=None if found is None else Reliability.model_validate(found),
        )


class AliasUpdate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**31 - 1)


class AliasChange(BaseModel):
    number: int = Field(description="1, 2, ... over all aliases of the model, without gaps.")
    alias: str
    kind: Literal["set", "rollback", "remove"]
    before: int | None = Field(
        description="The version before the change; null if the alias was new."
    )
    version: int | None = Field(
        description="The version after the change; null if the alias was removed."
    )
    changed_by: str | None = Field(description="Name of the API key; null if no key was required.")
    changed_at: datetime

    @classmethod
    def of(cls, row: tables.ModelAliasChange) -> "AliasChange":
        return cls(**shown_fields(cls, row))


class Difference(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    path: str = Field(examples=["config.n_heads"])
    left: Any = Field(description="Null if the left version does not have this entry.")
    right: Any = Field(description="Null if the right version does not have this entry.")


class Movement(BaseModel):
    """Images of a left cluster that are outside of its best match in the right clustering."""

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
    images: int = Field(description="Images in both clusterings; the scores are null without any.")
    same_cluster: float | None = Field(
        description="Share of images in matching clusters, with a one-to-one matching."
    )
    adjusted_rand_index: float | None
    normalized_mutual_information: float | None
    movements: list[Movement] = Field(description="The 50 largest, largest first.")


class Comparison(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    name: str
    left: int
    right: int
    configuration: list[Difference] = Field(description="Differences between the manifests.")
    metrics: list[Difference] = Field(
        description="Metrics of both versions, each on its own dataset."
    )
    cluster_names: list[Difference] = Field(
        description="Clusters with different current names; the path is the cluster id."
    )
    assignments: Agreement
