"""Queries for lists of datasets, images, issues and duplicates."""

from collections.abc import Iterable

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session, aliased

from app.core.platform.tables import Dataset, DatasetIssue, Duplicate, Image


def select_datasets(tenant: str, name: str | None = None) -> Select[Dataset]:
    query = select(Dataset).where(Dataset.tenant == tenant)
    return query if name is None else query.where(Dataset.name == name)


def select_images(dataset: Dataset) -> Select[Image]:
    """Without the images of an ingest that still runs."""
    return select(Image).where(
        Image.dataset_id == dataset.id, Image.position < dataset.end_position
    )


def select_issues(dataset: Dataset) -> Select[DatasetIssue]:
    return select(DatasetIssue).where(DatasetIssue.dataset_id == dataset.id)


def select_duplicates(dataset: Dataset, kind: str | None) -> Select[Duplicate, str, str]:
    """Duplicates with the names of the image and its original, one row per image."""
    # Looked up one by one: with a join the database may walk all images up to the page.
    image = Image.id == Duplicate.image_id
    name = select(Image.name).where(image).scalar_subquery()
    original = select(Image.name).where(Image.id == Duplicate.original_id).scalar_subquery()
    position = select(Image.position).where(image).scalar_subquery()
    query = select(Duplicate, name, original).where(
        Duplicate.dataset_id == dataset.id, position < dataset.end_position
    )
    if kind is not None:
        return query.where(Duplicate.kind == kind)
    exact = aliased(Duplicate)  # an image that is an exact and a near duplicate is listed once
    is_exact = select(exact.image_id).where(
        exact.image_id == Duplicate.image_id, exact.kind == "exact"
    )
    return query.where(or_(Duplicate.kind == "exact", ~is_exact.exists()))


def image_hashes(session: Session, tenant: str, image_ids: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each of these images that the tenant has, by image id."""
    rows = session.execute(
        select(Image.id, Image.sha256)
        .join(Dataset, Dataset.id == Image.dataset_id)
        .where(Image.id.in_(set(image_ids)), Dataset.tenant == tenant)
    )
    return {row.id: row.sha256 for row in rows}
