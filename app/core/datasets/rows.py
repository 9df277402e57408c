"""Datasets, their images and their issues."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.core.platform.activity import report_activity
from app.core.platform.errors import DatasetInUse, NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import OPEN, Dataset, DatasetIssue, Image, Job
from app.core.storage.deletion.cleanup import schedule_deletion

_PAGE = 2_000
_REMOVE_ROWS = 20_000


def create_dataset(session: Session, *, tenant: str, name: str) -> Dataset:
    dataset = Dataset(id=new_id("ds"), tenant=tenant, name=name)
    session.add(dataset)
    session.flush()
    return dataset


def get_dataset(session: Session, tenant: str, dataset_id: str, *, lock: bool = False) -> Dataset:
    """With `lock`, nobody else changes it before this transaction ends."""
    query = select(Dataset).where(Dataset.id == dataset_id, Dataset.tenant == tenant)
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise NotFound(f"There is no dataset {dataset_id}.")
    return found


def get_image(session: Session, tenant: str, image_id: str) -> Image:
    found = session.scalar(
        select(Image)
        .join(Dataset, Dataset.id == Image.dataset_id)
        .where(
            Image.id == image_id,
            Dataset.tenant == tenant,
            Image.position < Dataset.end_position,
        )
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
        report_activity()
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


def count_rows(session: Session, dataset_id: str, first: int = 0) -> tuple[int, int, int]:
    """Images, labeled images, issues; of one ingest only, if its first position is given."""
    images, labeled = session.execute(
        select(func.count(), func.count(Image.label)).where(
            Image.dataset_id == dataset_id, Image.position >= first
        )
    ).one()
    issues = session.scalar(
        select(func.count())
        .select_from(DatasetIssue)
        .where(DatasetIssue.dataset_id == dataset_id, DatasetIssue.position >= first)
    )
    return images, labeled, issues or 0


def totals(session: Session, dataset_id: str) -> dict[str, Any]:
    """What a dataset's row says of its images."""
    images, labeled, issues = count_rows(session, dataset_id)
    size = session.scalar(select(func.sum(Image.bytes)).where(Image.dataset_id == dataset_id))
    return {
        "image_count": images,
        "labeled_count": labeled,
        "issue_count": issues,
        "bytes": int(size or 0),
        "fingerprint": fingerprint(session, dataset_id),
    }


def fingerprint(session: Session, dataset_id: str) -> str:
    """Of the images' bytes and their order: what embeddings depend on, and nothing else."""
    digest, position = hashlib.sha256(), -1
    while page := session.execute(
        select(Image.position, Image.sha256)
        .where(Image.dataset_id == dataset_id, Image.position > position)
        .order_by(Image.position)
        .limit(_PAGE)
    ).all():
        digest.update(bytes.fromhex("".join(row.sha256 for row in page)))
        position = page[-1].position
    return digest.hexdigest()


def check_unused(session: Session, dataset: Dataset) -> None:
    """Its images may only change while no job works on them. The dataset must be locked."""
    user = session.scalar(
        select(Job.id).where(Job.dataset_id == dataset.id, Job.status.in_(OPEN)).limit(1)
    )
    if user is not None:
        raise DatasetInUse(f"The job {user} works on this dataset; wait for it or cancel it.")


def abandon_ingest(session: Session, dataset_id: str, error: dict[str, Any]) -> None:
    """An ingest that ends badly leaves the dataset as it was, and none of its own images."""
    dataset = session.get_one(Dataset, dataset_id)
    remove_positions(session, dataset_id, dataset.end_position)
    # Its issues stay to be read, so the next ingest counts on after them.
    dataset.end_position = max(dataset.end_position, last_position(session, dataset_id) + 1)
    dataset.issue_count = count_rows(session, dataset_id)[2]
    dataset.status = "ready" if dataset.image_count else "failed"
    dataset.error = None if dataset.image_count else error
    session.flush()


def remove_positions(session: Session, dataset_id: str, first: int) -> None:
    """All images from a position on, in pieces that no statement's time limit cuts off."""
    end = last_position(session, dataset_id) + 1
    for start in range(first, end, _REMOVE_ROWS):
        piece = (
            Image.dataset_id == dataset_id,
            Image.position >= start,
            Image.position < min(start + _REMOVE_ROWS, end),
        )
        schedule_deletion(session, *piece)
        session.execute(delete(Image).where(*piece).execution_options(synchronize_session=False))


def folder_label(name: str) -> str | None:
    """The folder a file lies in, for collections that are already sorted."""
    return PurePosixPath(name.replace("\\", "/")).parent.name or None
