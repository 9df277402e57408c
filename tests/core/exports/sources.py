"""Rows and sources for the tests of formats, with real files behind them."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.classes import Classes
from app.core.exports.source import ExportSource
from app.core.exports.splits import make_split
from tests.images import Color, png_bytes

CLUSTERS = {0: "cats", 1: "dogs"}


def row(number: int = 0, **fields: Any) -> LabeledImage:
    """A row of the cluster `cats` by default."""
    given: dict[str, Any] = {
        "image_id": f"img_{number}",
        "name": f"photos/{number}.png",
        "sha256": f"{number:064x}",
        "width": 16,
        "height": 12,
        "format": "PNG",
        "bytes": 10,
        "true_label": None,
        "attributes": {},
        "cluster_id": 0,
        "label": "cats",
        "probability": 0.5,
    }
    return LabeledImage(**given | fields)


def with_file(folder: Path, shown: LabeledImage, color: Color = "red") -> LabeledImage:
    """The same row with an image file."""
    data = png_bytes(color, (shown.width, shown.height))
    sha256 = hashlib.sha256(data).hexdigest()
    (folder / sha256).write_bytes(data)
    return shown._replace(sha256=sha256, bytes=len(data))


def excluded(number: int) -> LabeledImage:
    return row(number, cluster_id=None, label=None)


def source_of(
    folder: Path,
    rows: Sequence[LabeledImage],
    clusters: Mapping[int, str] = CLUSTERS,
    *,
    validation_fraction: float = 0.0,
    url_base: str = "",
) -> ExportSource:
    classes = Classes.of(clusters)
    return ExportSource(
        clustering_id="cl_1",
        revision=3,
        model="pets/versions/2",
        dataset_name="Our: pets",
        created_at=1_700_000_000.0,
        classes=classes,
        split=make_split(rows, classes, validation_fraction, seed=0),
        pages=lambda: iter([list(rows[i : i + 2]) for i in range(0, len(rows), 2)]),
        read_image=lambda sha256: (folder / sha256).read_bytes(),
        scratch=folder,
        url_base=url_base,
    )
