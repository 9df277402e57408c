"""The kinds of operations, and what each does to the clusters and images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from app.core.clusterings.operations.edit import Edit, chunked
from app.core.clusterings.splitting import Division
from app.core.platform.errors import InvalidRequest, RevisionStale
from app.core.platform.tables import EXCLUDED, Assignment

MAX_LABEL = 200


@dataclass(frozen=True, kw_only=True)
class Rename:
    cluster_id: int
    label: str

    def apply(self, edit: Edit) -> dict[str, Any]:
        (cluster,) = edit.clusters("cluster_id", [self.cluster_id])
        edit.change(cluster, label=self.label, active=True)
        return {"cluster_id": self.cluster_id, "label": self.label}


@dataclass(frozen=True, kw_only=True)
class Merge:
    cluster_ids: Sequence[int]
    into: int | None = None  # the largest
    label: str | None = None  # as it is

    def apply(self, edit: Edit) -> dict[str, Any]:
        if len(set(self.cluster_ids)) < len(self.cluster_ids):
            raise InvalidRequest.field("cluster_ids", "names a cluster twice")
        clusters = edit.clusters("cluster_ids", self.cluster_ids)
        if self.into is not None and self.into not in self.cluster_ids:
            raise InvalidRequest.field("into", "must be one of cluster_ids")
        into = self.into
        if into is None:
            into = max(clusters, key=lambda c: (c.size, -c.cluster_id)).cluster_id
        others = [number for number in self.cluster_ids if number != into]
        for cluster in clusters:
            is_target = cluster.cluster_id == into
            edit.change(cluster, label=self.label if is_target else None, active=is_target)
        for chunk in chunked(others):
            edit.move(Assignment.cluster_id.in_(chunk), into)
        return {"cluster_ids": list(self.cluster_ids), "into": into, "label": self.label}


@dataclass(frozen=True, kw_only=True)
class Split:
    cluster_id: int
    parts: int = 2
    seed: int = 0
    division: Division | None = None  # who goes where, found before the clustering was locked

    def apply(self, edit: Edit) -> dict[str, Any]:
        (cluster,) = edit.clusters("cluster_id", [self.cluster_id])
        if self.division is None or self.division.revision != edit.clustering.revision:
            raise RevisionStale("The clustering was changed while the split was prepared.")
        edit.change(cluster, active=True)
        for number, members in enumerate(self.division.leaving, start=2):
            suffix = f" ({number})"
            new = edit.add_cluster(cluster.label[: MAX_LABEL - len(suffix)] + suffix)
            for chunk in chunked(members):
                edit.move_images([image_id.decode() for image_id in chunk], new)
        return {"cluster_id": self.cluster_id, "parts": self.parts, "seed": self.seed}


@dataclass(frozen=True, kw_only=True)
class Move:
    image_ids: Sequence[str]
    cluster_id: int | None = None
    new_cluster: str | None = None  # its label, if the images are to have one of their own

    def apply(self, edit: Edit) -> dict[str, Any]:
        ids = _known_images(edit, self.image_ids)
        if self.new_cluster is not None:
            to = edit.add_cluster(self.new_cluster)
        elif self.cluster_id is not None:
            to = edit.clusters("cluster_id", [self.cluster_id])[0].cluster_id
        else:
            raise InvalidRequest.field("cluster_id", "or new_cluster must be given")
        edit.move_images(ids, to)
        return {"images": len(ids), "cluster_id": to, "new_cluster": self.new_cluster}


@dataclass(frozen=True, kw_only=True)
class Exclude:
    image_ids: Sequence[str]

    def apply(self, edit: Edit) -> dict[str, Any]:
        ids = _known_images(edit, self.image_ids)
        edit.move_images(ids, EXCLUDED)
        return {"images": len(ids)}


@dataclass(frozen=True, kw_only=True)
class Undo:
    """Takes back the newest operation that still holds."""


Operation = Rename | Merge | Split | Move | Exclude | Undo


def _known_images(edit: Edit, image_ids: Sequence[str]) -> list[str]:
    """Each once. The first that is not in this clustering is told."""
    unique = list(dict.fromkeys(image_ids))
    known: set[str] = set()
    for chunk in chunked(unique):
        known.update(
            edit.session.scalars(
                select(Assignment.image_id).where(
                    Assignment.clustering_id == edit.clustering.id, Assignment.image_id.in_(chunk)
                )
            )
        )
    missing = next((image_id for image_id in unique if image_id not in known), None)
    if missing is not None:
        raise InvalidRequest.field("image_ids", f"{missing} is not in this clustering")
    return unique
