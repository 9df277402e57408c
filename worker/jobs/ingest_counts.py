"""Counts of an ingest's files, and the errors that follow from them."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.datasets.images import MEDIA_TYPES
from app.core.datasets.rows import count_rows
from app.core.datasets.skipped import count_skipped
from app.core.platform.errors import DatasetEmpty, TooManyBadFiles
from app.core.platform.tables import Dataset, DatasetIssue, Job

_EXAMPLES, _MAX_EXAMPLE = 3, 120  # issues in an error, and characters of each


@dataclass(frozen=True)
class IngestCounts:
    """The files of this ingest."""

    images: int
    issues: int
    skipped: dict[str, int]

    @property
    def skipped_total(self) -> int:
        return sum(self.skipped.values())

    @property
    def total(self) -> int:
        return self.images + self.issues + self.skipped_total


def count_files(session: Session, job: Job) -> IngestCounts:
    dataset_id, first = job.dataset_id, job.config["first_position"]
    images, _, issues = count_rows(session, dataset_id, first)
    return IngestCounts(images, issues, count_skipped(session, dataset_id, first))


def check_counts(session: Session, job: Job, counts: IngestCounts, limit: float) -> None:
    """Raises if the source has no images, or too many that cannot be read."""
    claimed = counts.images + counts.issues
    if claimed == 0:
        raise DatasetEmpty(_no_images(counts))
    if counts.images == 0 or counts.issues > limit * claimed:
        dataset = session.get_one(Dataset, job.dataset_id)
        examples = session.scalars(
            select(DatasetIssue)
            .where(
                DatasetIssue.dataset_id == dataset.id,
                DatasetIssue.position >= job.config["first_position"],
            )
            .order_by(DatasetIssue.position)
            .limit(_EXAMPLES)
        )
        listed = "; ".join(
            f"{issue.name!r} ({issue.detail[:_MAX_EXAMPLE].rstrip('.')})" for issue in examples
        )
        raise TooManyBadFiles(
            f"{counts.issues:,} of {claimed:,} images of the dataset {dataset.name!r} cannot be "
            f"read, and at most {limit:.0%} may be unreadable. For example: {listed}. "
            f"List all with GET /v1/datasets/{dataset.id}/issues, or with `temi datasets issues "
            f"{dataset.id}`. Send the images again without them, or ask the operator to raise "
            "TEMI_MAX_BAD_FRACTION."
        )


def _no_images(counts: IngestCounts) -> str:
    if not counts.skipped:
        return "The source contains no files."
    kinds = ", ".join(f"{count:,} {reason}" for reason, count in counts.skipped.items())
    return (
        f"The source contains no images: all {counts.skipped_total:,} files are of other kinds "
        f"({kinds}). Send images as {', '.join(MEDIA_TYPES)}."
    )
