"""Adds images to a dataset whose bytes are stored already."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from app.core.datasets.rows import totals
from app.core.platform.ids import new_id
from app.core.platform.streams import batched
from app.core.platform.tables import Dataset, Image

_CHUNK = 500  # values in one statement


class StoredImage(NamedTuple):
    name: str
    sha256: str
    width: int
    height: int
    format: str
    bytes: int


def add_stored_images(
    session: Session, dataset: Dataset, images: Sequence[StoredImage]
) -> list[str]:
    """Returns the ids, in the order of the images. An image whose bytes the dataset has is not
    added again. The dataset must be locked and unused."""
    known = _known(session, dataset, [image.sha256 for image in images])
    rows: list[dict[str, Any]] = []
    for image in images:
        if image.sha256 not in known:
            known[image.sha256] = new_id("img")
            position = dataset.end_position + len(rows)
            place = {"id": known[image.sha256], "dataset_id": dataset.id, "position": position}
            rows.append(place | image._asdict())
    if rows:
        session.execute(insert(Image), rows)
        dataset.end_position += len(rows)
        for name, value in totals(session, dataset.id).items():
            setattr(dataset, name, value)
        session.flush()
    return [known[image.sha256] for image in images]


def _known(session: Session, dataset: Dataset, hashes: Sequence[str]) -> dict[str, str]:
    """The oldest image of the dataset with each of these hashes."""
    found: dict[str, str] = {}
    for some in batched(hashes, _CHUNK):
        rows = session.execute(
            select(Image.sha256, func.min(Image.id))
            .where(
                Image.dataset_id == dataset.id,
                Image.sha256.in_(some),
                Image.position < dataset.end_position,
            )
            .group_by(Image.sha256)
        )
        found |= {sha256: image_id for sha256, image_id in rows}
    return found
