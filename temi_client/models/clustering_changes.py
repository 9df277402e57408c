"""The difference of two clusterings of a dataset."""

from typing import Literal

from pydantic import Field

from temi_client.models.base import ApiModel


class ChangePart(ApiModel):
    """Images that a group of the old and a cluster of the new clustering have in common."""

    cluster_id: int
    label: str
    images: int
    share: float


class GroupChange(ApiModel):
    """What becomes of a group of the old clustering."""

    cluster_id: int  # in the old clustering
    label: str
    named: bool = False  # a person gave the label
    size: int
    status: str  # kept, split, merged or vanished
    suggested: Literal["approve", "reject"]
    into: list[ChangePart] = Field(default_factory=list)  # new clusters
    merged_with: list[int] = Field(default_factory=list)  # other groups
    stayed: int = 0
    left: int = 0
    came: int = 0
    added: int = 0  # images that the old clustering does not have
    by_hand: int = 0  # images that a person has placed


class AppearedCluster(ApiModel):
    """A cluster of the new clustering that continues no group of the old one."""

    cluster_id: int
    label: str
    named: bool = False
    size: int
    added: int = 0
    sources: list[ChangePart] = Field(default_factory=list)


class Changes(ApiModel):
    """What changes from an old to a new clustering of the same dataset."""

    clustering_id: str
    revision: int
    since: str
    since_revision: int
    images: int  # of both
    added: int = 0
    missing: int = 0  # a predict job must add them before the new one can be adopted
    groups: list[GroupChange] = Field(default_factory=list)
    appeared: list[AppearedCluster] = Field(default_factory=list)


class ChangedImage(ApiModel):
    image_id: str
    name: str
    cluster_id: int | None = None  # where it is now, or came from
    label: str | None = None


class ChangedImages(ApiModel):
    """Example images of a change."""

    stayed: list[ChangedImage] = Field(default_factory=list)
    left: list[ChangedImage] = Field(default_factory=list)
    came: list[ChangedImage] = Field(default_factory=list)
