"""The data of an export, which every format writes."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.classes import Classes
from app.core.exports.rows import Column
from app.core.exports.splits import Split, SplitName
from app.core.platform.errors import ImageMissing, StorageCorrupt


@dataclass(frozen=True, kw_only=True)
class ExportSource:
    clustering_id: str
    revision: int
    model: str  # name/versions/n
    dataset_name: str
    created_at: float  # of the clustering, so that an export is reproducible
    classes: Classes
    split: Split
    pages: Callable[[], Iterator[list[LabeledImage]]]
    read_image: Callable[[str], bytes]  # by SHA-256
    scratch: Path  # folder for temporary files
    url_base: str = ""  # before the path of an image's link

    @property
    def facts(self) -> dict[str, str]:
        """The origin of the labels."""
        return {
            "clustering_id": self.clustering_id,
            "revision": str(self.revision),
            "model": self.model,
        }

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that the row of an image does not have."""
        return {
            "label": lambda row: self.classes.name_of(row.cluster_id),
            "class_id": lambda row: self.classes.id_of(row.cluster_id),
            "split": self.split_of,
        }

    def split_of(self, row: LabeledImage) -> SplitName | None:
        return self.split.of(row, self.classes.id_of(row.cluster_id))

    def image_url(self, row: LabeledImage) -> str:
        return f"{self.url_base}/v1/images/{row.image_id}/content"

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


def _missing(row: LabeledImage, problem: str) -> ImageMissing:
    return ImageMissing(f"The image {row.image_id} ({row.name[:200]}) {problem}.")
