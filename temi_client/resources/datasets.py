"""Datasets and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from temi_client.downloads import Progress, download_stream
from temi_client.models.base import PageCursors
from temi_client.models.datasets import (
    CurrentClusteringChange,
    Dataset,
    DatasetIssue,
    Duplicate,
    Image,
    LabelRow,
    SearchResults,
)
from temi_client.resources.base import Resource, idempotency_header, path_segment, without_none
from temi_client.uploads import multipart_body

LabelFormat = Literal["jsonl", "csv", "arrow"]
DuplicateKind = Literal["exact", "near"]
_LABEL_TYPES: dict[str, str] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
}


class LabelSelection(TypedDict, total=False):
    clustering_id: str | None
    revision: int | None
    min_probability: float | None
    cluster_ids: Sequence[int] | None


class DatasetMethods(Resource):
    def datasets(self, *, name: str | None = None) -> Iterator[Dataset]:
        """Lists the datasets, newest first, or those of one name."""
        return self._pages(Dataset, "/v1/datasets", name=name)

    def dataset(self, dataset_id: str) -> Dataset:
        return self._get(Dataset, _path(dataset_id))

    def images(self, dataset_id: str, *, cursor: str | None = None) -> Iterator[Image]:
        """Lists the images in the order of the upload, from a cursor on if given."""
        return self._pages(Image, f"{_path(dataset_id)}/images", cursor=cursor)

    def image_cursors(self, dataset_id: str, *, every: int | None = None) -> PageCursors:
        """Returns the cursor of every 200th image, or of every `every`-th."""
        return self._get(PageCursors, f"{_path(dataset_id)}/images/cursors", every=every)

    def issues(self, dataset_id: str) -> Iterator[DatasetIssue]:
        return self._pages(DatasetIssue, f"{_path(dataset_id)}/issues")

    def duplicates(
        self, dataset_id: str, *, kind: DuplicateKind | None = None
    ) -> Iterator[Duplicate]:
        """Lists the duplicates of earlier images."""
        return self._pages(Duplicate, f"{_path(dataset_id)}/duplicates", kind=kind)

    def rename_dataset(self, dataset_id: str, name: str) -> Dataset:
        response = self._transport.send("PATCH", _path(dataset_id), json={"name": name})
        return Dataset.model_validate_json(response.content)

    def set_current_clustering(self, dataset_id: str, clustering_id: str) -> Dataset:
        """Chooses the clustering that gives the dataset its labels."""
        path, body = _current(dataset_id), {"clustering_id": clustering_id}
        response = self._transport.send("PUT", path, json=body)
        return Dataset.model_validate_json(response.content)

    def rollback_current_clustering(
        self, dataset_id: str, *, idempotency_key: str | None = None
    ) -> Dataset:
        """Undoes the last choice; each call goes one choice further back."""
        path = f"{_current(dataset_id)}:rollback"
        return self._post(Dataset, path, headers=idempotency_header(idempotency_key))

    def current_clustering_history(self, dataset_id: str) -> Iterator[CurrentClusteringChange]:
        """Lists the changes of the current clustering, newest first."""
        return self._pages(CurrentClusteringChange, f"{_current(dataset_id)}/history")

    def delete_dataset(self, dataset_id: str) -> None:
        """Deletes a dataset with its images, clusterings and exports."""
        self._delete(_path(dataset_id))

    def delete_images(self, dataset_id: str, image_ids: Sequence[str]) -> Dataset:
        return self._post(
            Dataset, f"{_path(dataset_id)}/images:delete", {"image_ids": list(image_ids)}
        )

    def search(
        self,
        dataset_id: str,
        photo: str | Path | None = None,
        *,
        image_id: str | None = None,
        text: str | None = None,
        limit: int | None = None,
        clustering_id: str | None = None,
        cluster_id: int | None = None,
    ) -> SearchResults:
        """Finds the images most like a photo, an image of a dataset, or a text, by the features of
        a clustering; a text needs those of a CLIP backbone."""
        if [photo, image_id, text].count(None) != 2:
            raise ValueError("pass one of photo, image_id and text")
        options = {"limit": limit, "clustering_id": clustering_id, "cluster_id": cluster_id}
        content: dict[str, Any] = {"json": without_none({"image_id": image_id, "text": text})}
        if photo is not None:
            content = {"body": multipart_body([Path(photo)])}
        response = self._transport.send(
            "POST", f"{_path(dataset_id)}:search", params=without_none(options), **content
        )
        return SearchResults.model_validate_json(response.content)

    def labels(self, dataset_id: str, **selection: Unpack[LabelSelection]) -> Iterator[LabelRow]:
        """Streams the label of every image, by default from the current clustering."""
        with self._transport.stream(
            f"{_path(dataset_id)}/labels",
            headers={"Accept": _LABEL_TYPES["jsonl"]},
            params=_label_params(selection),
        ) as response:
            for line in response.iter_lines():
                if line:
                    yield LabelRow.model_validate_json(line)

    def save_labels(
        self,
        dataset_id: str,
        path: str | Path,
        format: LabelFormat = "csv",
        *,
        progress: Progress | None = None,
        **selection: Unpack[LabelSelection],
    ) -> Path:
        """Saves the rows of `labels` as JSON lines, CSV or an Arrow stream."""
        return download_stream(
            self._transport,
            f"{_path(dataset_id)}/labels",
            Path(path),
            headers={"Accept": _LABEL_TYPES[format]},
            params=_label_params(selection),
            progress=progress,
        )


def _current(dataset_id: str) -> str:
    return f"{_path(dataset_id)}/current-clustering"


def _path(dataset_id: str) -> str:
    return f"/v1/datasets/{path_segment(dataset_id)}"


def _label_params(selection: LabelSelection) -> dict[str, Any]:
    params = without_none(selection)
    if "cluster_ids" in params:
        params["cluster_id"] = list(params.pop("cluster_ids"))
    return params
