"""Refused images, and the groups that they are proposed to be."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.schemas.common import shown_fields
from app.api.schemas.models import ModelRef
from app.core.clusterings.operations.kinds import MAX_LABEL
from app.core.platform import tables

ProposalStatus = Literal["open", "accepted", "dismissed"]


class RefusedImage(BaseModel):
    id: str
    version: int = Field(description="The version of the model that refused it.")
    name: str = Field(description="The file name in the request, or that of the image.")
    width: int
    height: int
    format: str
    bytes: int
    novelty: float = Field(description="Share of the training images that are less unusual.")
    image_id: str | None = Field(
        description="The image of a dataset, if a predict job refused it; deleted with it."
    )
    proposal_id: str | None = Field(description="Null if it has no group yet.")
    kept_at: datetime

    @classmethod
    def of(cls, row: tables.RefusedImage) -> "RefusedImage":
        return cls(**shown_fields(cls, row))


class Refused(BaseModel):
    """What is kept of the images that a model has refused."""

    images: int
    proposals: int = Field(description="Open ones.")
    max_images: int = Field(
        description="Of each model; the oldest are replaced (`TEMI_KEEP_REFUSED`). 0: none is kept."
    )
    days: float = Field(description="An image is deleted after so many (`TEMI_KEEP_REFUSED_DAYS`).")


class Proposal(BaseModel):
    """A group of similar images that a model has refused."""

    id: str
    model: ModelRef
    status: ProposalStatus
    size: int = Field(description="Images that it has now, or had when it was decided.")
    tightness: float = Field(description="Mean cosine of two of its images; 1 if all are equal.")
    images: list[RefusedImage] = Field(
        description="The most typical ones, at most 12; empty once it was decided."
    )
    suggested_cluster_id: int | None = Field(
        description="The group that similar images were accepted as; null if there are none."
    )
    clustering_id: str | None = Field(description="Where it was accepted.")
    cluster_id: int | None = Field(description="The group of its images, if it was accepted.")
    revision: int | None = Field(description="Of the clustering, if it was accepted.")
    created_at: datetime
    decided_by: str | None = Field(description="Name of the API key; null if no key was required.")
    decided_at: datetime | None

    @classmethod
    def of(
        cls,
        row: tables.Proposal,
        name: str,
        size: int | None = None,
        images: Sequence[tables.RefusedImage] = (),
    ) -> "Proposal":
        """`size`: the images that an open proposal has now."""
        found = shown_fields(cls, row) | {
            "model": ModelRef(name=name, version=row.version),
            "images": [RefusedImage.of(image) for image in images],
        }
        return cls(**(found if size is None else found | {"size": size}))


class ProposalAccept(BaseModel):
    """Exactly one of the two fields."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"new_cluster": "durian"}]}
    )

    new_cluster: str | None = Field(
        default=None, min_length=1, max_length=MAX_LABEL, description="The name of a new group."
    )
    cluster_id: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="An existing group of the clustering."
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> "ProposalAccept":
        if (self.new_cluster is None) == (self.cluster_id is None):
            raise ValueError("send one of new_cluster and cluster_id")
        return self
