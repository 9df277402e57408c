"""Refused images, and the groups that they are proposed to be."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from temi_client.models.base import ApiModel
from temi_client.models.registry import ModelRef

ProposalStatus = Literal["open", "accepted", "dismissed"]


class RefusedImage(ApiModel):
    id: str
    version: int  # of the model that refused it
    name: str
    width: int
    height: int
    format: str
    bytes: int
    novelty: float
    image_id: str | None = None  # of a dataset, if a predict job refused it
    proposal_id: str | None = None
    kept_at: datetime


class Refused(ApiModel):
    """What is kept of the images that a model has refused."""

    images: int
    proposals: int  # open ones
    max_images: int  # 0: none is kept
    days: float


class Proposal(ApiModel):
    """A group of similar images that a model has refused."""

    id: str
    model: ModelRef
    status: str  # open, accepted or dismissed
    size: int
    tightness: float  # mean cosine of two images
    images: list[RefusedImage] = Field(default_factory=list)  # the most typical ones
    suggested_cluster_id: int | None = None  # similar images were accepted as this group
    clustering_id: str | None = None  # where it was accepted
    cluster_id: int | None = None
    revision: int | None = None
    created_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None
