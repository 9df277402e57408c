"""Deletes images and datasets, and updates dependent rows in the same transaction."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Select, delete, exists, func, insert, literal, select, update
from sqlalchemy.orm import Session, aliased

from app.core.clusterings.rows import refresh_clusters
from app.core.datasets.rows import remove_positions, totals
from app.core.platform.errors import NotFound
from app.core.platform.streams import batched
from app.core.platform.tables import (
    OPEN,
    Assignment,
    Clustering,
    Dataset,
    Duplicate,
    Embedding,
    Export,
    Image,
    Job,
)
from app.core.storage.deletion.cleanup import schedule_deletion
from app.core.storage.keys import job_folder

_CHUNK = 1_000  # values in one statement
_NAMED = 10  # unknown ids in an error


def delete_images(session: Session, dataset: Dataset, image_ids: Sequence[str]) -> None:
    """Deletes all of the images or none. The dataset must be locked and unused."""
    wanted = list(dict.fromkeys(image_ids))
    hashes = _hashes(session, dataset, wanted)
    changed: set[tuple[str, int]] = set()
    for ids in batched(wanted, _CHUNK):
        clusters = select(Assignment.clustering_id, Assignment.cluster_id).distinct()
        rows = session.execute(clusters.where(Assignment.image_id.in_(ids)))
        changed |= {(row.clustering_id, row.cluster_id) for row in rows}
        schedule_deletion(session, Image.id.in_(ids))
        session.execute(
            delete(Image).where(Image.id.in_(ids)).execution_options(synchronize_session=False)
        )
    _point_to_oldest(session, dataset.id, sorted(hashes))
    _refresh_clusterings(session, changed)
    for name, value in totals(session, dataset.id).items():
        setattr(dataset, name, value)
    session.flush()


def delete_dataset(session: Session, dataset: Dataset) -> list[str]:
    """Returns the storage keys and folders to delete after the commit."""
    leftovers = [
        *session.scalars(_exports(dataset.id)),
        *(job_folder(job_id) for job_id in session.scalars(_jobs(dataset.id))),
        *session.scalars(_embeddings(dataset.id)),
    ]
    remove_positions(session, dataset.id, 0)
    session.execute(
        delete(Dataset).where(Dataset.id == dataset.id).execution_options(synchronize_session=False)
    )
    return leftovers


def mark_duplicates(session: Session, dataset_id: str, *which: ColumnElement[bool]) -> None:
    """Adds those of these images as duplicates whose bytes an earlier image has."""
    oldest, same = aliased(Image), aliased(Image)
    first = (
        select(func.min(same.position))
        .where(same.dataset_id == dataset_id, same.sha256 == Image.sha256)
        .correlate(Image)
        .scalar_subquery()
    )
    rows = (
        select(
            Image.id, literal("exact"), Image.dataset_id, oldest.id.label("original"), literal(1.0)
        )
        .join(oldest, (oldest.dataset_id == dataset_id) & (oldest.position == first))
        .where(Image.dataset_id == dataset_id, Image.position > first, *which)
    )
    columns = ["image_id", "kind", "dataset_id", "original_id", "similarity"]
    session.execute(insert(Duplicate).from_select(columns, rows))


def _hashes(session: Session, dataset: Dataset, wanted: list[str]) -> set[str]:
    found: dict[str, str] = {}
    for ids in batched(wanted, _CHUNK):
        query = select(Image.id, Image.sha256).where(
            Image.id.in_(ids),
            Image.dataset_id == dataset.id,
            Image.position < dataset.end_position,
        )
        found |= {row.id: row.sha256 for row in session.execute(query)}
    if missing := [image_id for image_id in wanted if image_id not in found]:
        named = ", ".join(missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise NotFound(f"The dataset has no image {named}{more}; none was deleted.")
    return set(found.values())


def _point_to_oldest(session: Session, dataset_id: str, hashes: list[str]) -> None:
    """Makes the oldest remaining copy the original of the others."""
    for some in batched(hashes, _CHUNK):
        copies = select(Image.id).where(Image.dataset_id == dataset_id, Image.sha256.in_(some))
        session.execute(
            delete(Duplicate)
            .where(Duplicate.kind == "exact", Duplicate.image_id.in_(copies))
            .execution_options(synchronize_session=False)
        )
        mark_duplicates(session, dataset_id, Image.sha256.in_(some))


def _refresh_clusterings(session: Session, changed: set[tuple[str, int]]) -> None:
    for clustering_id in sorted({clustering_id for clustering_id, _ in changed}):
        clusters = sorted(number for owner, number in changed if owner == clustering_id)
        for numbers in batched(clusters, _CHUNK):
            refresh_clusters(session, clustering_id, numbers)
        left = select(func.count()).where(Assignment.clustering_id == clustering_id)
        session.execute(
            update(Clustering)
            .where(Clustering.id == clustering_id)
            .values(image_count=left.scalar_subquery())
            .execution_options(synchronize_session=False)
        )


def _exports(dataset_id: str) -> Select[str]:
    return (
        select(Export.storage_key)
        .join(Clustering, Clustering.id == Export.clustering_id)
        .where(Clustering.dataset_id == dataset_id)
    )


def _jobs(dataset_id: str) -> Select[str]:
    return select(Job.id).where(Job.dataset_id == dataset_id)


def _embeddings(dataset_id: str) -> Select[str]:
    """Features that no other dataset of the same images uses or may use soon."""
    other = aliased(Embedding)
    return select(Embedding.folder).where(
        Embedding.dataset_id == dataset_id,
        ~exists().where(other.folder == Embedding.folder, other.dataset_id != dataset_id),
        ~exists().where(
            Clustering.embedding_folder == Embedding.folder, Clustering.dataset_id != dataset_id
        ),
        ~exists().where(
            Job.dataset_fingerprint == Embedding.fingerprint,
            Job.dataset_id != dataset_id,
            Job.status.in_(OPEN),
        ),
    )
