"""Datasets, their images and their issues."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.core.datasets.skipped import count_skipped
from app.core.platform.activity import report_activity
from app.core.platform.errors import DatasetInUse, NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import OPEN, Dataset, DatasetIssue, Image, Job, SkippedFiles
from app.core.storage.deletion.cleanup import schedule_deletion

_PAGE = 2_000
_DELETE_ROWS = 20_000


def create_dataset(session: Session, *, tenant: str, name: str) -> Dataset:
    dataset = Dataset(id=new_id("ds"), tenant=tenant, name=name)
    session.add(dataset)
    session.flush()
    return dataset


def get_dataset(session: Session, tenant: str, dataset_id: str, *, lock: bool = False) -> Dataset:
    """With `lock`, the row is locked until this transaction ends."""
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
    """Pages of all images, in upload order."""
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
            session.expunge(image)  # else the session keeps every row in memory


def last_position(session: Session, dataset_id: str) -> int:
    """The last position that an ingest has recorded; -1 if there is none."""
    columns = (
        (Image, Image.position),
        (DatasetIssue, DatasetIssue.position),
        (SkippedFiles, SkippedFiles.last_position),
    )
    last = (
        session.scalar(select(func.max(position)).where(table.dataset_id == dataset_id))
        for table, position in columns
    )
    return max((position for position in last if position is not None), default=-1)


def count_rows(session: Session, dataset_id: str, first: int = 0) -> tuple[int, int, int]:
    """Counts of images, labeled images and issues from position `first` on."""
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
    """The columns of a dataset's row that depend on its images."""
    images, labeled, issues = count_rows(session, dataset_id)
    size = session.scalar(select(func.sum(Image.bytes)).where(Image.dataset_id == dataset_id))
    return {
        "image_count": images,
        "labeled_count": labeled,
        "issue_count": issues,
        "skipped": count_skipped(session, dataset_id),
        "bytes": int(size or 0),
        "fingerprint": fingerprint(session, dataset_id),
    }


def fingerprint(session: Session, dataset_id: str) -> str:
    """Hash of the images' bytes and order, which is what embeddings depend on."""
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


def check_unused(session: Session, dataset: Dataset, *, ignored_job: str = "") -> None:
    """Raises DatasetInUse if another job is open. The dataset must be locked."""
    user = session.scalar(
        select(Job.id)
        .where(
            Job.dataset_id == dataset.id,
            Job.status.in_(OPEN),
            Job.id != ignored_job,
            Job.kind != "gather",  # reads refused images, which are in no dataset
        )
        .limit(1)
    )
    if user is not None:
        raise DatasetInUse(f"The job {user} uses this dataset; wait for it or cancel it.")


def abandon_ingest(session: Session, dataset_id: str, error: dict[str, Any]) -> None:
    """Deletes the images of a failed ingest; the dataset stays as it was before."""
    dataset = session.get_one(Dataset, dataset_id)
    remove_positions(session, dataset_id, dataset.end_position)
    # Its issues and skipped files stay, so the next ingest continues after their positions.
    dataset.end_position = max(dataset.end_position, last_position(session, dataset_id) + 1)
    dataset.issue_count = count_rows(session, dataset_id)[2]
    dataset.skipped = count_skipped(session, dataset_id)
    dataset.status = "ready" if dataset.image_count else "failed"
    dataset.error = None if dataset.image_count else error
    session.flush()


def remove_positions(session: Session, dataset_id: str, first: int) -> None:
    """Deletes all images from a position on, in chunks within the statement timeout."""
    end = last_position(session, dataset_id) + 1
    for start in range(first, end, _DELETE_ROWS):
        chunk = (
            Image.dataset_id == dataset_id,
            Image.position >= start,
            Image.position < min(start + _DELETE_ROWS, end),
        )
        schedule_deletion(session, *chunk)
        session.execute(delete(Image).where(*chunk).execution_options(synchronize_session=False))


def folder_label(name: str) -> str | None:
    """The name of a file's folder, which is its label in a sorted dataset."""
    return PurePosixPath(name.replace("\\", "/")).parent.name or None
