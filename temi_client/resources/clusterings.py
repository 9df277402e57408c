"""Clusterings, their clusters and images, and operations that edit them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from temi_client.models.clusterings import (
    Assignment,
    Cluster,
    Clustering,
    Operation,
    RankedImage,
    Statistics,
)
from temi_client.resources.base import Resource, idempotency_header, path_segment, without_none

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
        """Returns the probabilities and cluster sizes."""
        return self._get(Statistics, f"{_path(clustering_id)}/statistics")

    def clusters(self, clustering_id: str) -> Iterator[Cluster]:
        return self._pages(Cluster, f"{_path(clustering_id)}/clusters")

    def get_cluster(self, clustering_id: str, cluster_id: int) -> Cluster:
        return self._get(Cluster, _cluster(clustering_id, cluster_id))

    def cluster_images(
        self, clustering_id: str, cluster_id: int, *, sort: ImageOrder = "representative"
    ) -> Iterator[RankedImage]:
        """Lists the images of a cluster: representative, borderline or outlier images first."""
        path = f"{_cluster(clustering_id, cluster_id)}/images"
        return self._pages(RankedImage, path, sort=sort)

    def assignments(
        self, clustering_id: str, cluster_id: int | None = None, *, excluded: bool | None = None
    ) -> Iterator[Assignment]:
        """Lists the cluster of each image; `excluded` selects excluded images or all others."""
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
        """Returns a PNG with representative and borderline images of a cluster."""
        path = f"{_cluster(clustering_id, cluster_id)}/contact-sheet"
        query = without_none({"rows": rows, "columns": columns, "borderline_rows": borderline_rows})
        return self._transport.send("GET", path, params=query).content

    def plot(
        self, clustering_id: str, name: PlotName, *, format: Literal["png", "svg"] = "png"
    ) -> bytes:
        """Returns a plot. `confusion` needs true labels, `curves` the job."""
        path = f"{_path(clustering_id)}/plots/{path_segment(name)}"
        return self._transport.send("GET", path, params={"format": format}).content

    def operations(self, clustering_id: str) -> Iterator[Operation]:
        """Lists the operations, newest first."""
        return self._pages(Operation, f"{_path(clustering_id)}/operations")

    def rename_cluster(
        self, clustering_id: str, cluster_id: int, label: str, *, revision: int | None = None
    ) -> Operation:
        """Renames a cluster. All operations expect a `revision`, by default the current one, and
        raise `ApiError` with status 412 if the clustering is at another one."""
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
        """Merges clusters, by default into the largest of them."""
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
        """Splits a cluster by the similarity of its images, by default in two."""
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
        """Moves images to a cluster, or to a new one with the label `new_cluster`."""
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
        """Excludes images from the clustering; they stay in the dataset."""
        return self._operate(clustering_id, revision, kind="exclude", image_ids=list(image_ids))

    def undo(self, clustering_id: str, *, revision: int | None = None) -> Operation:
        """Undoes the latest operation that is not undone yet."""
        return self._operate(clustering_id, revision, kind="undo")

    def _operate(self, clustering_id: str, revision: int | None, **operation: Any) -> Operation:
        if revision is None:
            revision = self.clustering(clustering_id).revision
        # With the key, a retry returns the result of an attempt that succeeded.
        headers = {"If-Match": f'"{revision}"', **idempotency_header(None)}
        path = f"{_path(clustering_id)}/operations"
        return self._post(Operation, path, without_none(operation), headers)


def _path(clustering_id: str) -> str:
    return f"/v1/clusterings/{path_segment(clustering_id)}"


def _cluster(clustering_id: str, cluster_id: int) -> str:
    return f"{_path(clustering_id)}/clusters/{path_segment(cluster_id)}"
