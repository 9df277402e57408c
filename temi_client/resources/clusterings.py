"""Clusterings, their clusters and images, and operations that edit them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from temi_client.models.base import PageCursors
from temi_client.models.clusterings import (
    Assignment,
    Cluster,
    Clustering,
    Hierarchy,
    NameSuggestions,
    Operation,
    RankedImage,
    Selection,
    SimilarClusters,
    SplitPreview,
    Statistics,
)
from temi_client.resources.base import Resource, idempotency_header, path_segment, without_none

ImageOrder = Literal["representative", "borderline", "outlier", "similar"]
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

    def clusters(self, clustering_id: str, *, examples: int | None = None) -> Iterator[Cluster]:
        """Lists the clusters, each with this many of its most probable images (0 to 24)."""
        return self._pages(Cluster, f"{_path(clustering_id)}/clusters", examples=examples)

    def get_cluster(self, clustering_id: str, cluster_id: int) -> Cluster:
        return self._get(Cluster, _cluster(clustering_id, cluster_id))

    def cluster_images(
        self,
        clustering_id: str,
        cluster_id: int,
        *,
        sort: ImageOrder = "representative",
        similar_to: str | None = None,
        cursor: str | None = None,
    ) -> Iterator[RankedImage]:
        """Lists the images of a cluster: representative, borderline or outlier images first, or
        those first that are most similar to the image `similar_to`; from a cursor on if given."""
        path = f"{_cluster(clustering_id, cluster_id)}/images"
        return self._pages(RankedImage, path, sort=sort, similar_to=similar_to, cursor=cursor)

    def cluster_image_cursors(
        self,
        clustering_id: str,
        cluster_id: int,
        *,
        sort: ImageOrder = "representative",
        similar_to: str | None = None,
        every: int | None = None,
    ) -> PageCursors:
        """Returns the cursor of every 200th image, or of every `every`-th, in this order."""
        path = f"{_cluster(clustering_id, cluster_id)}/images/cursors"
        return self._get(PageCursors, path, sort=sort, similar_to=similar_to, every=every)

    def name_suggestions(
        self, clustering_id: str, cluster_ids: Sequence[int] | None = None
    ) -> NameSuggestions:
        """Returns names for these clusters, at most 200, or for all if there are no more."""
        numbers = None if cluster_ids is None else list(cluster_ids)
        path = f"{_path(clustering_id)}/name-suggestions"
        return self._get(NameSuggestions, path, cluster_id=numbers)

    def similar_clusters(
        self, clustering_id: str, cluster_id: int, *, limit: int | None = None
    ) -> SimilarClusters:
        """Returns the other clusters, most similar first."""
        path = f"{_cluster(clustering_id, cluster_id)}/similar"
        return self._get(SimilarClusters, path, limit=limit)

    def hierarchy(self, clustering_id: str, n_groups: int) -> Hierarchy:
        """Returns the clusters in so many groups of similar ones. Changes nothing:
        `merge_clusters` makes a group one cluster."""
        return self._get(Hierarchy, f"{_path(clustering_id)}/hierarchy", n_groups=n_groups)

    def assignments(
        self,
        clustering_id: str,
        cluster_id: int | None = None,
        *,
        excluded: bool | None = None,
        other: str | None = None,
        other_cluster_id: int | None = None,
    ) -> Iterator[Assignment]:
        """Lists the cluster of each image; `excluded` selects excluded images or all others,
        `other_cluster_id` those that are in this cluster of the clustering `other`."""
        return self._pages(
            Assignment,
            f"{_path(clustering_id)}/assignments",
            cluster_id=cluster_id,
            excluded=excluded,
            other=other,
            other_cluster_id=other_cluster_id,
        )

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
        leave: Sequence[int] | None = None,
        revision: int | None = None,
    ) -> Operation:
        """Splits a cluster by the similarity of its images, by default in two. `leave` has the
        parts of the preview that become new clusters, by default all but part 0."""
        return self._operate(
            clustering_id,
            revision,
            kind="split",
            cluster_id=cluster_id,
            parts=parts,
            seed=seed,
            leave=None if leave is None else list(leave),
        )

    def preview_split(
        self,
        clustering_id: str,
        cluster_id: int,
        *,
        parts: int | None = None,
        seed: int | None = None,
    ) -> SplitPreview:
        """Returns the parts that a split with the same arguments would make."""
        path = f"{_cluster(clustering_id, cluster_id)}:preview-split"
        return self._post(SplitPreview, path, without_none({"parts": parts, "seed": seed}))

    def move_images(
        self,
        clustering_id: str,
        images: Sequence[str] | Selection,
        *,
        cluster_id: int | None = None,
        new_cluster: str | None = None,
        revision: int | None = None,
    ) -> Operation:
        """Moves images, given by their ids or a selection, to a cluster, or to a new one with the
        label `new_cluster`."""
        return self._operate(
            clustering_id,
            revision,
            kind="move",
            **_images(images),
            cluster_id=cluster_id,
            new_cluster=new_cluster,
        )

    def exclude_images(
        self,
        clustering_id: str,
        images: Sequence[str] | Selection,
        *,
        revision: int | None = None,
    ) -> Operation:
        """Excludes images, given by their ids or a selection; they stay in the dataset."""
        return self._operate(clustering_id, revision, kind="exclude", **_images(images))

    def undo(self, clustering_id: str, *, revision: int | None = None) -> Operation:
        """Undoes the latest operation that is not undone yet."""
        return self._operate(clustering_id, revision, kind="undo")

    def redo(self, clustering_id: str, *, revision: int | None = None) -> Operation:
        """Does the latest undone operation again, if the clustering was not edited since."""
        return self._operate(clustering_id, revision, kind="redo")

    def _operate(self, clustering_id: str, revision: int | None, **operation: Any) -> Operation:
        if revision is None:
            revision = self.clustering(clustering_id).revision
        # With the key, a retry returns the result of an attempt that succeeded.
        headers = {"If-Match": f'"{revision}"', **idempotency_header(None)}
        path = f"{_path(clustering_id)}/operations"
        return self._post(Operation, path, without_none(operation), headers)


def _images(images: Sequence[str] | Selection) -> dict[str, Any]:
    if isinstance(images, Selection):
        return {"selection": images.model_dump(exclude_none=True)}
    return {"image_ids": list(images)}


def _path(clustering_id: str) -> str:
    return f"/v1/clusterings/{path_segment(clustering_id)}"


def _cluster(clustering_id: str, cluster_id: int) -> str:
    return f"{_path(clustering_id)}/clusters/{path_segment(cluster_id)}"
