"""The kinds of operations, and how each changes clusters and images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from sqlalchemy import select

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
            raise InvalidRequest.field("cluster_ids", "names a cluster twice")
        clusters = editor.clusters("cluster_ids", self.cluster_ids)
        if self.into is not None and self.into not in self.cluster_ids:
            raise InvalidRequest.field("into", "must be one of cluster_ids")
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
    plan: SplitPlan | None = None  # computed before the clustering was locked

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        (cluster,) = editor.clusters("cluster_id", [self.cluster_id])
        if self.plan is None or self.plan.revision != editor.clustering.revision:
            raise RevisionStale("The clustering was changed while the split was computed; retry.")
        editor.change(cluster, active=True)
        for number, members in enumerate(self.plan.new_clusters, start=2):
            suffix = f" ({number})"
            new = editor.add_cluster(cluster.label[: MAX_LABEL - len(suffix)] + suffix)
            for chunk in chunked(members):
                editor.move_images([image_id.decode() for image_id in chunk], new)
        return {"cluster_id": self.cluster_id, "parts": self.parts, "seed": self.seed}


@dataclass(frozen=True, kw_only=True)
class Move:
    image_ids: Sequence[str]
    cluster_id: int | None = None
    new_cluster: str | None = None  # the label of a new cluster

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        ids = _known_images(editor, self.image_ids)
        if self.new_cluster is not None:
            to = editor.add_cluster(self.new_cluster)
        elif self.cluster_id is not None:
            to = editor.clusters("cluster_id", [self.cluster_id])[0].cluster_id
        else:
            raise InvalidRequest.field("cluster_id", "or new_cluster must be given")
        editor.move_images(ids, to)
        return {"images": len(ids), "cluster_id": to, "new_cluster": self.new_cluster}


@dataclass(frozen=True, kw_only=True)
class Exclude:
    image_ids: Sequence[str]

    def apply(self, editor: ClusteringEditor) -> dict[str, Any]:
        ids = _known_images(editor, self.image_ids)
        editor.move_images(ids, EXCLUDED)
        return {"images": len(ids)}


@dataclass(frozen=True, kw_only=True)
class Undo:
    """Undoes the newest operation that is not undone."""


Operation = Rename | Merge | Split | Move | Exclude | Undo
KINDS: dict[str, type[Operation]] = {kind.__name__.lower(): kind for kind in get_args(Operation)}


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
