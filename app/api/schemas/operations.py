"""Operations on a clustering, one schema per kind."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from app.api.schemas.common import shown_fields
from app.core.platform import tables


def _printable(label: str) -> str:
    if any(ord(character) < 32 for character in label):
        raise ValueError("must be one line of text without control characters")
    return label


OperationKind = Literal["rename", "merge", "split", "move", "exclude", "undo"]
ClusterId = Annotated[int, Field(ge=0, lt=2**31)]
Label = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(_printable),
]
ImageIds = Annotated[
    list[Annotated[str, Field(max_length=40)]], Field(min_length=1, max_length=10_000)
]


class _Create(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RenameCreate(_Create):
    """Rename a cluster."""

    kind: Literal["rename"]
    cluster_id: ClusterId
    label: Label = Field(examples=["cats"])


class MergeCreate(_Create):
    """Merge clusters into one of them."""

    kind: Literal["merge"]
    cluster_ids: list[ClusterId] = Field(min_length=2, max_length=10_000, examples=[[3, 7]])
    into: ClusterId | None = Field(
        default=None, description="One of `cluster_ids`; by default the largest."
    )
    label: Label | None = Field(default=None, description="A new name of the merged cluster.")


class SplitCreate(_Create):
    """Split a cluster by the similarity of its images. The largest part keeps its id."""

    kind: Literal["split"]
    cluster_id: ClusterId
    parts: int = Field(default=2, ge=2, le=100)
    seed: int = Field(default=0, ge=0, lt=2**31)


class MoveCreate(_Create):
    """Move images, also excluded ones, to an existing or a new cluster."""

    kind: Literal["move"]
    image_ids: ImageIds
    cluster_id: ClusterId | None = None
    new_cluster: Label | None = Field(default=None, description="Name of a new cluster.")

    @model_validator(mode="after")
    def _one_target(self) -> "MoveCreate":
        if (self.cluster_id is None) == (self.new_cluster is None):
            raise ValueError("give either cluster_id or new_cluster")
        return self


class ExcludeCreate(_Create):
    """Exclude images from the clustering. `move` or `undo` reverts it."""

    kind: Literal["exclude"]
    image_ids: ImageIds


class UndoCreate(_Create):
    """Undo the newest operation that is not undone yet."""

    kind: Literal["undo"]


OperationCreate = Annotated[
    RenameCreate | MergeCreate | SplitCreate | MoveCreate | ExcludeCreate | UndoCreate,
    Field(discriminator="kind"),
]


class Operation(BaseModel):
    revision: int = Field(description="Revision of the clustering after the operation.")
    kind: OperationKind
    arguments: dict[str, Any] = Field(
        description="The arguments that took effect; only the number of the images."
    )
    moved: int = Field(description="Number of images that were moved.")
    new_cluster_ids: list[int] = Field(description="Clusters that it created.")
    undoes: int | None = Field(description="The revision that this operation has undone.")
    undone_by: int | None = Field(description="The revision that has undone this operation.")
    created_by: str | None = Field(description="Name of the API key; null if no key was required.")
    created_at: datetime

    @classmethod
    def of(cls, row: tables.ClusteringOperation) -> "Operation":
        new = [int(key) for key, was in row.clusters_before.items() if was["label"] is None]
        return cls(**shown_fields(cls, row), new_cluster_ids=sorted(new))
