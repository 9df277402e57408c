"""Clusterings: the groups, who is in them, and what people do to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from temi_client.models import (
    Assignment,
    Cluster,
    Clustering,
    Operation,
    RankedImage,
    Statistics,
)
from temi_client.resources.base import Resource, given, idempotency, part

ImageOrder = Literal["representative", "borderline", "outlier"]
PlotName = Literal["sizes", "probabilities", "confusion", "curves"]


class ClusteringMethods(Resource):
    def clusterings(self, *, dataset_id: str | None = None) -> Iterator[Clustering]:
        return self._pages(Clustering, "/v1/clusterings", dataset_id=dataset_id)

    def clustering(self, clustering_id: str) -> Clustering:
        return self._get(Clustering, _path(clustering_id))

    def delete_clustering(self, clustering_id: str) -> None:
        self._delete(_path(clustering_id))

    def statistics(self, clustering_id: str) -> Statistics:
        """How sure it is, and how even its clusters are."""
        return self._get(Statistics, f"{_path(clustering_id)}/statistics")

    def clusters(self, clustering_id: str) -> Iterator[Cluster]:
        return self._pages(Cluster, f"{_path(clustering_id)}/clusters")

    def get_cluster(self, clustering_id: str, cluster_id: int) -> Cluster:
        return self._get(Cluster, _cluster(clustering_id, cluster_id))

    def cluster_images(
        self, clustering_id: str, cluster_id: int, *, sort: ImageOrder = "representative"
    ) -> Iterator[RankedImage]:
        """First those that stand for the cluster, are at its border, or do not fit."""
        path = f"{_cluster(clustering_id, cluster_id)}/images"
        return self._pages(RankedImage, path, sort=sort)

    def assignments(
        self, clustering_id: str, cluster_id: int | None = None, *, excluded: bool | None = None
    ) -> Iterator[Assignment]:
        """Which image is in which cluster; `excluded` keeps those that were taken out, or the
        others."""
        path = f"{_path(clustering_id)}/assignments"
        return self._pages(Assignment, path, cluster_id=cluster_id, excluded=excluded)

    def contact_sheet(
        self,
        clustering_id: str,
        cluster_id: int,
        *,
        rows: int | None = None,
        columns: int | None = None,
        borderline_rows: int | None = None,
    ) -> bytes:
        """A PNG with the images that stand for a cluster, and some at its border."""
        path = f"{_cluster(clustering_id, cluster_id)}/contact-sheet"
        asked = given({"rows": rows, "columns": columns, "borderline_rows": borderline_rows})
        return self._transport.send("GET", path, params=asked).content

    def plot(
        self, clustering_id: str, name: PlotName, *, format: Literal["png", "svg"] = "png"
    ) -> bytes:
        """A figure of the clustering. `confusion` needs labels, `curves` the job."""
        path = f"{_path(clustering_id)}/plots/{part(name)}"
        return self._transport.send("GET", path, params={"format": format}).content

    def operations(self, clustering_id: str) -> Iterator[Operation]:
        """What people did to it, newest first."""
        return self._pages(Operation, f"{_path(clustering_id)}/operations")

    def rename_cluster(
        self, clustering_id: str, cluster_id: int, label: str, *, revision: int | None = None
    ) -> Operation:
        """Operations are meant for one `revision`, by default the current one. `ApiError` with
        status 412 says that someone was quicker."""
        return self._operate(
            clustering_id, revision, kind="rename", cluster_id=cluster_id, label=label
        )

    def merge_clusters(
        self,
        clustering_id: str,
        cluster_ids: Sequence[int],
        *,
        into: int | None = None,
        label: str | None = None,
        revision: int | None = None,
    ) -> Operation:
        """Put clusters together, into the largest of them unless said otherwise."""
        return self._operate(
            clustering_id,
            revision,
            kind="merge",
            cluster_ids=list(cluster_ids),
            into=into,
            label=label,
        )

    def split_cluster(
        self,
        clustering_id: str,
        cluster_id: int,
        *,
        parts: int | None = None,
        seed: int | None = None,
        revision: int | None = None,
    ) -> Operation:
        """Divide a cluster by what its images look like, in two unless said otherwise."""
        return self._operate(
            clustering_id, revision, kind="split", cluster_id=cluster_id, parts=parts, seed=seed
        )

    def move_images(
        self,
        clustering_id: str,
        image_ids: Sequence[str],
        *,
        cluster_id: int | None = None,
        new_cluster: str | None = None,
        revision: int | None = None,
    ) -> Operation:
        """Put images into a cluster, or into a new one with the label `new_cluster`."""
        return self._operate(
            clustering_id,
            revision,
            kind="move",
            image_ids=list(image_ids),
            cluster_id=cluster_id,
            new_cluster=new_cluster,
        )

    def exclude_images(
        self, clustering_id: str, image_ids: Sequence[str], *, revision: int | None = None
    ) -> Operation:
        """Take images out of the clustering; they stay in the dataset."""
        return self._operate(clustering_id, revision, kind="exclude", image_ids=list(image_ids))

    def undo(self, clustering_id: str, *, revision: int | None = None) -> Operation:
        """Take back the newest operation that still holds."""
        return self._operate(clustering_id, revision, kind="undo")

    def _operate(self, clustering_id: str, revision: int | None, **operation: Any) -> Operation:
        if revision is None:
            revision = self.clustering(clustering_id).revision
        # The key lets a retry learn that the first attempt was done.
        headers = {"If-Match": f'"{revision}"', **idempotency(None)}
        path = f"{_path(clustering_id)}/operations"
        return self._post(Operation, path, given(operation), headers)


def _path(clustering_id: str) -> str:
    return f"/v1/clusterings/{part(clustering_id)}"


def _cluster(clustering_id: str, cluster_id: int) -> str:
    return f"{_path(clustering_id)}/clusters/{part(cluster_id)}"
