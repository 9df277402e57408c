"""The difference of two clusterings of a dataset, and its adoption."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.common import shown_fields
from app.api.schemas.operations import ClusterId
from app.core.clusterings import retraining
from app.core.clusterings.retraining import changed_images, changes

Decision = Literal["approve", "reject"]


class ChangePart(BaseModel):
    """Images that a group of the old and a cluster of the new clustering have in common."""

    cluster_id: int
    label: str
    images: int
    share: float = Field(description="Of the images of the group, or of the appeared cluster.")

    @classmethod
    def of(cls, part: changes.Part) -> "ChangePart":
        return cls(**part._asdict())


class GroupChange(BaseModel):
    """What becomes of a group of the old clustering."""

    cluster_id: int = Field(description="In the old clustering.")
    label: str
    named: bool = Field(description="Whether a person gave the label.")
    size: int
    status: Literal["kept", "split", "merged", "vanished"] = Field(
        description="`kept`: it continues in one new cluster, or in several that stay one because "
        "a person has merged the group; `split`: in several; `merged`: other groups go to the same "
        "one; `vanished`: no new cluster has most of it, or consists of it."
    )
    suggested: Decision = Field(
        description="The decision if none is sent: `reject` if a person has named or made the "
        "group, and less than half of it would stay together."
    )
    into: list[ChangePart] = Field(
        description="New clusters that it goes to, that with most of its images first."
    )
    merged_with: list[int] = Field(description="Other groups that go to the same new clusters.")
    stayed: int = Field(description="Its images in the clusters of `into`.")
    left: int = Field(description="Its images in other clusters.")
    came: int = Field(description="Images of others in the clusters that continue it.")
    added: int = Field(description="Images in them that the old clustering does not have.")
    by_hand: int = Field(
        description="Images that a person has moved to it, or confirmed in a review."
    )

    @classmethod
    def of(cls, change: changes.GroupChange) -> "GroupChange":
        into = [ChangePart.of(part) for part in change.into]
        return cls(**shown_fields(cls, change) | {"into": into})


class AppearedCluster(BaseModel):
    """A cluster of the new clustering that continues no group of the old one."""

    cluster_id: int
    label: str
    named: bool
    size: int
    added: int = Field(description="Images that the old clustering does not have.")
    sources: list[ChangePart] = Field(description="Groups that its images come from.")

    @classmethod
    def of(cls, cluster: changes.AppearedCluster) -> "AppearedCluster":
        sources = [ChangePart.of(part) for part in cluster.sources]
        return cls(**shown_fields(cls, cluster) | {"sources": sources})


class Changes(BaseModel):
    """What changes from an old to a new clustering of the same dataset."""

    clustering_id: str
    revision: int
    since: str = Field(description="The old clustering.")
    since_revision: int
    images: int = Field(description="Images of both clusterings.")
    added: int = Field(description="Images that only the new one has.")
    missing: int = Field(
        description="Images that only the old one has: a job of kind predict must add them to the "
        "new one before it can be adopted."
    )
    groups: list[GroupChange] = Field(description="By the number in the old clustering.")
    appeared: list[AppearedCluster]

    @classmethod
    def of(cls, found: retraining.Changes) -> "Changes":
        lists = {
            "groups": [GroupChange.of(each) for each in found.groups],
            "appeared": [AppearedCluster.of(each) for each in found.appeared],
        }
        return cls(**shown_fields(cls, found) | lists)


class ChangedImage(BaseModel):
    image_id: str
    name: str
    cluster_id: int | None = Field(
        description="The cluster that it is in now, or that it came from; null if it is excluded "
        "or was not in the old clustering."
    )
    label: str | None

    @classmethod
    def of(cls, image: changed_images.ChangedImage) -> "ChangedImage":
        return cls(**image._asdict())


class ChangedImages(BaseModel):
    """Example images of a change, most probable first."""

    stayed: list[ChangedImage]
    left: list[ChangedImage]
    came: list[ChangedImage]

    @classmethod
    def of(cls, found: retraining.ChangedImages) -> "ChangedImages":
        lists = found._asdict().items()
        return cls(**{name: [ChangedImage.of(one) for one in each] for name, each in lists})


class GroupDecision(BaseModel):
    model_config = ConfigDict(extra="forbid")

    cluster_id: ClusterId = Field(description="The group, by its number in the old clustering.")
    decision: Decision = Field(
        description="`approve`: it becomes what the new clustering made of it; `reject`: it keeps "
        "the images that it had."
    )


class AdoptionCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: str = Field(
        max_length=40,
        description="The old clustering, whose names and edits are taken over.",
        examples=["cl_01k9z3m4q5r6s7t8v9w0x1y2z3"],
    )
    since_revision: int = Field(
        ge=1, lt=2**31, description="Its revision that you have read; 412 if it was edited since."
    )
    decisions: list[GroupDecision] = Field(
        default=[],
        max_length=100_000,
        description="Groups without a decision get the suggested one; of two for one group the "
        "last one counts.",
    )
    make_current: bool = Field(
        default=False, description="Also make it the current clustering of the dataset."
    )
    alias: Annotated[str, Field(max_length=64)] | None = Field(
        default=None,
        description="Also set this alias of its model to its version.",
        examples=["production"],
    )
