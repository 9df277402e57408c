"""The data of an export, which every format writes."""

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.core.clusterings.revisions import LabeledImage
from app.core.platform.errors import ImageMissing, StorageCorrupt


@dataclass(frozen=True, kw_only=True)
class ExportSource:
    clustering_id: str
    revision: int
    model: str  # name/versions/n
    dataset_name: str
    created_at: float  # of the clustering, so that an export is reproducible
    clusters: Mapping[int, str]  # the chosen ones, in order, with their labels
    pages: Callable[[], Iterator[list[LabeledImage]]]
    read_image: Callable[[str], bytes]  # by SHA-256
    scratch: Path  # folder for temporary files

    @property
    def facts(self) -> dict[str, str]:
        """The origin of the labels."""
        return {
            "clustering_id": self.clustering_id,
            "revision": str(self.revision),
            "model": self.model,
        }

    def rows(self) -> Iterator[LabeledImage]:
        for page in self.pages():
            yield from page

    def open_image(self, row: LabeledImage) -> IO[bytes]:
        """The original bytes; raises ImageMissing."""
        try:
            data = self.read_image(row.sha256)
        except FileNotFoundError as error:
            raise _missing(row, "is not in the storage") from error
        except StorageCorrupt as error:
            raise _missing(row, "is damaged in the storage") from error
        if len(data) != row.bytes:
            raise _missing(row, f"has {len(data):,} bytes in the storage instead of {row.bytes:,}")
        return io.BytesIO(data)


def content_url(image_id: str) -> str:
    return f"/v1/images/{image_id}/content"


def _missing(row: LabeledImage, problem: str) -> ImageMissing:
    return ImageMissing(f"The image {row.image_id} ({row.name[:200]}) {problem}.")
