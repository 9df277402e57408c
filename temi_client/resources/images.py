"""Single images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from temi_client.downloads import Progress, download_resumable
from temi_client.models.datasets import Image, ImageLabel, Neighbor, Neighbors
from temi_client.resources.base import Resource, path_segment


class ImageMethods(Resource):
    def image(self, image_id: str) -> Image:
        return self._get(Image, _path(image_id))

    def image_content(
        self, image_id: str, path: str | Path, *, progress: Progress | None = None
    ) -> Path:
        """Saves the original file; resumes an interrupted download."""
        entry = self.image(image_id)
        return download_resumable(
            self._transport,
            f"{_path(image_id)}/content",
            Path(path),
            size=entry.bytes,
            sha256=entry.sha256,
            progress=progress,
        )

    def thumbnail(self, image_id: str, size: int = 256) -> bytes:
        """Returns a WebP; `size` is its longer side: 64, 128, 256 or 512."""
        path = f"{_path(image_id)}/thumbnail"
        return self._transport.send("GET", path, params={"size": size}).content

    def image_labels(self, image_id: str) -> Iterator[ImageLabel]:
        """Lists the labels of the image in all clusterings."""
        return self._pages(ImageLabel, f"{_path(image_id)}/labels")

    def neighbors(self, image_id: str, *, limit: int | None = None) -> list[Neighbor]:
        """Returns the most similar images of the dataset."""
        return self._get(Neighbors, f"{_path(image_id)}/neighbors", limit=limit).data

    def delete_image(self, image_id: str) -> None:
        self._delete(_path(image_id))


def _path(image_id: str) -> str:
    return f"/v1/images/{path_segment(image_id)}"
