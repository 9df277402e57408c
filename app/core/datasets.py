"""Datasets, their images and their issues."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.storage import LocalStorage
from app.core.tables import Dataset, DatasetIssue, Image

_PAGE = 2_000


def create_dataset(
    session: Session, *, tenant: str, name: str, labels_from: str, upload_key: str, size: int
) -> Dataset:
    dataset = Dataset(
        id=new_id("ds"),
        tenant=tenant,
        name=name,
        labels_from=labels_from,
        upload_key=upload_key,
        bytes=size,
    )
    session.add(dataset)
    session.flush()
    return dataset


def get_dataset(session: Session, tenant: str, dataset_id: str) -> Dataset:
    found = session.scalar(
        select(Dataset).where(Dataset.id == dataset_id, Dataset.tenant == tenant)
    )
    if found is None:
        raise NotFound(f"There is no dataset {dataset_id}.")
    return found


def get_image(session: Session, tenant: str, image_id: str) -> Image:
    found = session.scalar(
        select(Image)
        .join(Dataset, Dataset.id == Image.dataset_id)
        .where(Image.id == image_id, Dataset.tenant == tenant)
    )
    if found is None:
        raise NotFound(f"There is no image {image_id}.")
    return found


def iterate_images(
    session: Session, dataset_id: str, after_position: int = -1
) -> Iterator[Sequence[Image]]:
    """All images in the order of the upload, a page at a time."""
    while page := session.scalars(
        select(Image)
        .where(Image.dataset_id == dataset_id, Image.position > after_position)
        .order_by(Image.position)
        .limit(_PAGE)
    ).all():
        yield page
        after_position = page[-1].position
        for image in page:
            session.expunge(image)  # else the session would remember every row it has seen


def last_position(session: Session, dataset_id: str) -> int:
    """The furthest member that an interrupted ingest has already recorded."""
    furthest = (
        session.scalar(select(func.max(table.position)).where(table.dataset_id == dataset_id))
        for table in (Image, DatasetIssue)
    )
    return max((position for position in furthest if position is not None), default=-1)


def count_rows(session: Session, dataset_id: str) -> tuple[int, int, int]:
    """Images, labelled images, issues."""
    images, labelled = session.execute(
        select(func.count(), func.count(Image.label)).where(Image.dataset_id == dataset_id)
    ).one()
    issues = session.scalar(
        select(func.count()).select_from(DatasetIssue).where(DatasetIssue.dataset_id == dataset_id)
    )
    return images, labelled, issues or 0


def fingerprint(session: Session, dataset_id: str) -> str:
    """Of the images' bytes and their order: what embeddings depend on, and nothing else."""
    digest = hashlib.sha256()
    for page in iterate_images(session, dataset_id):
        for image in page:
            digest.update(bytes.fromhex(image.sha256))
    return digest.hexdigest()


def fail_dataset(session: Session, dataset_id: str, error: dict[str, Any]) -> None:
    """An ingest that ends badly leaves a dataset that says so, and no half of its images."""
    session.execute(
        update(Dataset)
        .where(Dataset.id == dataset_id)
        .values(status="failed", error=error, image_count=0, labelled_count=0)
    )
    session.execute(delete(Image).where(Image.dataset_id == dataset_id))


def drop_upload(session: Session, storage: LocalStorage, dataset_id: str) -> None:
    """The archive is of no more use once its ingest has ended, well or badly."""
    storage.delete(session.get_one(Dataset, dataset_id).upload_key)


def folder_label(name: str) -> str | None:
    """The folder a file lies in, for collections that are already sorted."""
    return PurePosixPath(name.replace("\\", "/")).parent.name or None
