"""Counts of the files that ingests skipped because they are not images."""

from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.platform.tables import SkippedFiles

MAX_REASONS = 20  # further ones are counted as `other`
OTHER = "other"


def add_skipped(
    session: Session, dataset_id: str, first: int, counts: Mapping[str, int], last: int
) -> None:
    """Adds to the counts of the ingest that began at position `first`; `last` is its last file."""
    of_ingest = select(SkippedFiles).where(
        SkippedFiles.dataset_id == dataset_id, SkippedFiles.first_position == first
    )
    rows = {row.reason: row for row in session.scalars(of_ingest)}
    for reason, count in counts.items():
        known = reason in rows or len(rows) < MAX_REASONS - 1
        kept = reason if known else OTHER
        if kept not in rows:
            rows[kept] = SkippedFiles(
                dataset_id=dataset_id, first_position=first, reason=kept, count=0
            )
            session.add(rows[kept])
        rows[kept].count += count
        rows[kept].last_position = last


def count_skipped(session: Session, dataset_id: str, first: int = 0) -> dict[str, int]:
    """Counts by reason, of the ingests from position `first` on; the largest first."""
    total = func.sum(SkippedFiles.count)
    found = session.execute(
        select(SkippedFiles.reason, total)
        .where(SkippedFiles.dataset_id == dataset_id, SkippedFiles.first_position >= first)
        .group_by(SkippedFiles.reason)
        .order_by(total.desc(), SkippedFiles.reason)
    )
    counts = [(reason, int(count)) for reason, count in found]
    kept = dict(counts[: MAX_REASONS - 1])
    if rest := sum(count for _, count in counts[MAX_REASONS - 1 :]):
        kept[OTHER] = kept.get(OTHER, 0) + rest
    return kept
