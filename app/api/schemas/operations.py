"""Edits of a clustering, one schema a kind."""

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
    """Give a cluster a name."""

    kind: Literal["rename"]
    cluster_id: ClusterId
    label: Label = Field(examples=["cats"])


class MergeCreate(_Create):
    """Put all images of some clusters into one of them."""

    kind: Literal["merge"]
    cluster_ids: list[ClusterId] = Field(min_length=2, max_length=10_000, examples=[[3, 7]])
    into: ClusterId | None = Field(default=None, description="One of them; by default the largest.")
    label: Label | None = Field(default=None, description="A new name for it.")


class SplitCreate(_Create):
    """Divide a cluster by what its images look like. The largest part keeps its id."""

    kind: Literal["split"]
    cluster_id: ClusterId
    parts: int = Field(default=2, ge=2, le=100)
    seed: int = Field(default=0, ge=0, lt=2**31)


class MoveCreate(_Create):
    """Put images, also excluded ones, into a cluster, or into a new one."""

    kind: Literal["move"]
    image_ids: ImageIds
    cluster_id: ClusterId | None = None
    new_cluster: Label | None = Field(default=None, description="Name of a cluster to be made.")

    @model_validator(mode="after")
    def _one_target(self) -> "MoveCreate":
        if (self.cluster_id is None) == (self.new_cluster is None):
            raise ValueError("give either cluster_id or new_cluster")
        return self


class ExcludeCreate(_Create):
    """Take images out of the clustering. `move` or `undo` brings them back."""

    kind: Literal["exclude"]
    image_ids: ImageIds


class UndoCreate(_Create):
    """Take back the newest operation that still holds; again, the one before it."""

    kind: Literal["undo"]


OperationCreate = Annotated[
    RenameCreate | MergeCreate | SplitCreate | MoveCreate | ExcludeCreate | UndoCreate,
    Field(discriminator="kind"),
]


class Operation(BaseModel):
    revision: int = Field(description="Of the clustering after it.")
    kind: OperationKind
    arguments: dict[str, Any] = Field(
        description="As they took effect; of images only how many were named."
    )
    moved: int = Field(description="Images that are elsewhere now.")
    new_cluster_ids: list[int] = Field(description="Clusters that it made.")
    undoes: int | None = Field(description="The revision that it took back.")
    undone_by: int | None = Field(description="The revision that took it back.")
    created_at: datetime

    @classmethod
    def of(cls, row: tables.ClusteringOperation) -> "Operation":
        new = [int(key) for key, was in row.clusters_before.items() if was["label"] is None]
        return cls(**shown_fields(cls, row), new_cluster_ids=sorted(new))
