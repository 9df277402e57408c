"""Operations on a clustering, one schema per kind."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from app.api.schemas.common import shown_fields
from app.core.clusterings.operations import created_clusters
from app.core.platform import tables


def _printable(text: str) -> str:
    if any(ord(character) < 32 for character in text):
        raise ValueError("must be one line of text without control characters")
    return text


OperationKind = Literal[
    "rename", "merge", "split", "move", "exclude", "undo", "redo", "extend", "adopt"
]
ClusterId = Annotated[int, Field(ge=0, lt=2**31)]
Label = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(_printable),
]
_ImageId = Annotated[str, Field(max_length=40), AfterValidator(_printable)]
ImageIds = Annotated[list[_ImageId], Field(min_length=1, max_length=10_000)]
_Probability = Annotated[float, Field(ge=0, le=1)]


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


class SplitPreviewCreate(_Create):
    parts: int = Field(default=2, ge=2, le=100)
    seed: int = Field(default=0, ge=0, lt=2**31)


class SplitCreate(SplitPreviewCreate):
    """Split a cluster by the similarity of its images. By default the largest part keeps its id."""

    kind: Literal["split"]
    cluster_id: ClusterId
    leave: list[Annotated[int, Field(ge=0, lt=100)]] | None = Field(
        default=None,
        min_length=1,
        max_length=99,
        description="Parts, as numbered in the preview with the same parts and seed, that become "
        "new clusters; by default all but part 0. At least one must stay.",
    )


class Selection(_Create):
    """All images of a cluster, or those of them in a range of probabilities."""

    cluster_id: ClusterId
    min_probability: _Probability | None = None
    max_probability: _Probability | None = None
    except_image_ids: list[_ImageId] = Field(
        default=[], max_length=10_000, description="Images that stay."
    )


class _ImagesCreate(_Create):
    """An operation on images, given by their ids or by a selection."""

    image_ids: ImageIds | None = None
    selection: Selection | None = Field(
        default=None, description="Instead of `image_ids`: any number of images of a cluster."
    )

    @model_validator(mode="after")
    def _ids_or_selection(self) -> Self:
        if (self.image_ids is None) == (self.selection is None):
            raise ValueError("give either image_ids or selection")
        return self


class MoveCreate(_ImagesCreate):
    """Move images, also excluded ones, to an existing or a new cluster."""

    kind: Literal["move"]
    cluster_id: ClusterId | None = None
    new_cluster: Label | None = Field(default=None, description="Name of a new cluster.")

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.cluster_id is None) == (self.new_cluster is None):
            raise ValueError("give either cluster_id or new_cluster")
        return self


class ExcludeCreate(_ImagesCreate):
    """Exclude images from the clustering. `move` or `undo` reverts it."""

    kind: Literal["exclude"]


class UndoCreate(_Create):
    """Undo the newest operation that is not undone yet."""

    kind: Literal["undo"]


class RedoCreate(_Create):
    """Do the newest undone operation again. Refused after any other operation."""

    kind: Literal["redo"]


OperationCreate = Annotated[
    RenameCreate | MergeCreate | SplitCreate | MoveCreate | ExcludeCreate | UndoCreate | RedoCreate,
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
    undoes: int | None = Field(
        description="The revision that this operation has undone; for a redo, that of the undo."
    )
    undone_by: int | None = Field(description="The revision that has undone this operation.")
    created_by: str | None = Field(
        description="Name of the API key; null if no key was required, or for `extend`, which a "
        "job of kind predict adds when it adds images."
    )
    created_at: datetime

    @classmethod
    def of(cls, row: tables.ClusteringOperation) -> Self:
        return cls(**shown_fields(cls, row), new_cluster_ids=created_clusters(row))


class OperationWarning(BaseModel):
    code: Literal["name_in_use"]
    detail: str
    cluster_ids: list[int]


class AppliedOperation(Operation):
    warnings: list[OperationWarning] = []

    @classmethod
    def applied(cls, row: tables.ClusteringOperation, same: "dict[str, list[int]]") -> Self:
        """`same` has the names that several clusters have now, with their clusters."""
        shown = cls.of(row)
        for name, numbers in same.items():
            listed = ", ".join(map(str, numbers))
            detail = (
                f"Clusters {listed} have the name {name!r}: an export has one class for them. "
                "Merge them if they are the same, or give one another name."
            )
            warning = OperationWarning(code="name_in_use", detail=detail, cluster_ids=numbers)
            shown.warnings.append(warning)
        return shown
