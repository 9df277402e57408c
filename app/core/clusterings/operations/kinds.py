"""The kinds of operations, and how each changes clusters and images."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from sqlalchemy import and_, select

from app.core.clusterings.operations.editor import ClusteringEditor, chunked
from app.core.clusterings.splitting import SplitPlan
from app.core.platform.errors import InvalidRequest, RevisionStale
from app.core.platform.tables import EXCLUDED, Assignment

MAX_LABEL = 200


@dataclass(frozen=True, kw_only=True)
class Rename:
    cluster_id: int
    label: str

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        (cluster,) = editor.clusters("cluster_id", [self.cluster_id])
        editor.change(cluster, label=self.label, active=True)
        return {"cluster_id": self.cluster_id, "label": self.label}


@dataclass(frozen=True, kw_only=True)
class Merge:
    cluster_ids: Sequence[int]
    into: int | None = None  # None: the largest
    label: str | None = None  # None: unchanged

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        if len(set(self.cluster_ids)) < len(self.cluster_ids):
            twice = Counter(self.cluster_ids).most_common(1)[0][0]
            raise InvalidRequest.field("cluster_ids", f"names cluster {twice} twice")
        clusters = editor.clusters("cluster_ids", self.cluster_ids)
        if self.into is not None and self.into not in self.cluster_ids:
            raise InvalidRequest.field("into", f"must be one of cluster_ids, not {self.into}")
        into = self.into
        if into is None:
            into = max(clusters, key=lambda c: (c.size, -c.cluster_id)).cluster_id
        others = [number for number in self.cluster_ids if number != into]
        for cluster in clusters:
            is_target = cluster.cluster_id == into
            editor.change(cluster, label=self.label if is_target else None, active=is_target)
        for chunk in chunked(others):
            editor.move(Assignment.cluster_id.in_(chunk), into)
        return {"cluster_ids": list(self.cluster_ids), "into": into, "label": self.label}


@dataclass(frozen=True, kw_only=True)
class Split:
    cluster_id: int
    parts: int = 2
    seed: int = 0
    leave: Sequence[int] | None = None  # parts that become new clusters; None: all but part 0
    plan: SplitPlan | None = None  # computed before the clustering was locked

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        (cluster,) = editor.clusters("cluster_id", [self.cluster_id])
        if self.plan is None or self.plan.revision != editor.clustering.revision:
            raise RevisionStale("The clustering was changed while the split was computed; retry.")
        leave = self._leaving(len(self.plan.parts))
        editor.change(cluster, active=True)
        for number, part in enumerate(leave, start=2):
            new = editor.add_cluster(numbered_label(cluster.label, number), named=False)
            for chunk in chunked(self.plan.parts[part]):
                editor.move_images([image_id.decode() for image_id in chunk], new)
        return {
            "cluster_id": self.cluster_id,
            "parts": self.parts,
            "seed": self.seed,
            "leave": leave,
        }

    def _leaving(self, parts: int) -> list[int]:
        """The parts that become new clusters."""
        if self.leave is None:
            return list(range(1, parts))
        unknown = next((part for part in self.leave if part >= parts), None)
        if unknown is not None:
            raise InvalidRequest.field(
                "leave", f"there is no part {unknown}: the parts are 0 to {parts - 1}"
            )
        leave = sorted(set(self.leave))
        if len(leave) == parts:
            raise InvalidRequest.field("leave", "names all parts: at least one must stay")
        return leave


@dataclass(frozen=True, kw_only=True)
class Selection:
    """All images of a cluster, or those in a range of probabilities."""

    cluster_id: int
    min_probability: float | None = None
    max_probability: float | None = None
    except_image_ids: Sequence[str] = ()

    def move(self, editor: ClusteringEditor, to: int) -> dict[str, Any]:
        """Moves the images to a cluster; returns the arguments for the history."""
        editor.clusters("selection.cluster_id", [self.cluster_id])
        given = [Assignment.cluster_id == self.cluster_id]
        if self.min_probability is not None:
            given.append(Assignment.probability >= self.min_probability)
        if self.max_probability is not None:
            given.append(Assignment.probability <= self.max_probability)
        if self.except_image_ids:
            given.append(Assignment.image_id.not_in(self.except_image_ids))
        moved = editor.move(and_(*given), to)
        described = {
            "cluster_id": self.cluster_id,
            "min_probability": self.min_probability,
            "max_probability": self.max_probability,
            "except_images": len(self.except_image_ids),
        }
        return {"images": moved, "selection": described}


@dataclass(frozen=True, kw_only=True)
class Move:
    image_ids: Sequence[str] | None = None
    selection: Selection | None = None  # instead of image_ids
    cluster_id: int | None = None
    new_cluster: str | None = None  # the label of a new cluster
    withdrawal: bool = False  # takes back the move of an answer: says nothing about the images

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        if self.new_cluster is not None:
            to = editor.add_cluster(self.new_cluster, named=True)
        elif self.cluster_id is not None:
            to = editor.clusters("cluster_id", [self.cluster_id])[0].cluster_id
        else:
            raise InvalidRequest.field("cluster_id", "give it, or new_cluster")
        moved = _move(editor, self.image_ids, self.selection, to)
        mark = {"withdrawal": True} if self.withdrawal else {}
        return {**moved, "cluster_id": to, "new_cluster": self.new_cluster, **mark}


@dataclass(frozen=True, kw_only=True)
class Exclude:
    image_ids: Sequence[str] | None = None
    selection: Selection | None = None  # instead of image_ids

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        return _move(editor, self.image_ids, self.selection, EXCLUDED)


@dataclass(frozen=True, kw_only=True)
class Undo:
    """Undoes the newest operation that is not undone."""


@dataclass(frozen=True, kw_only=True)
class Redo:
    """Does the newest undone operation again."""


Operation = Rename | Merge | Split | Move | Exclude | Undo | Redo
KINDS: dict[str, type[Operation]] = {kind.__name__.lower(): kind for kind in get_args(Operation)}


def numbered_label(label: str, number: int) -> str:
    """The label of a part of a cluster; the first part keeps that of the cluster."""
    suffix = f" ({number})" if number > 1 else ""
    return label[: MAX_LABEL - len(suffix)] + suffix


def _move(
    editor: ClusteringEditor,
    image_ids: Sequence[str] | None,
    selection: Selection | None,
    to: int,
) -> dict[str, Any]:
    if selection is not None:
        return selection.move(editor, to)
    ids = _known_images(editor, image_ids or ())
    editor.move_images(ids, to)
    return {"images": len(ids)}


def _known_images(editor: ClusteringEditor, image_ids: Sequence[str]) -> list[str]:
    """The ids without duplicates; raises an error for one that is not in the clustering."""
    unique = list(dict.fromkeys(image_ids))
    known: set[str] = set()
    for chunk in chunked(unique):
        known.update(
            editor.session.scalars(
                select(Assignment.image_id).where(
                    Assignment.clustering_id == editor.clustering.id, Assignment.image_id.in_(chunk)
                )
            )
        )
    missing = next((image_id for image_id in unique if image_id not in known), None)
    if missing is not None:
        raise InvalidRequest.field("image_ids", f"{missing} is not in this clustering")
    return unique
