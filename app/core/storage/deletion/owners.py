"""Which rows refer to which files: every kind of artifact, by the prefix of its keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, exists, select
from sqlalchemy.orm import Session, aliased

from app.core.platform.settings import Settings
from app.core.platform.tables import (
    OPEN,
    Clustering,
    Dataset,
    Embedding,
    Export,
    Image,
    Job,
    ModelVersion,
    RefusedImage,
    Upload,
)
from app.core.storage.keys import (
    BLOBS,
    EMBEDDINGS,
    EXPORTS,
    JOBS,
    LISTINGS,
    MODELS,
    THUMBNAILS,
    UPLOADS,
    blob_key,
    id_of,
    job_folder,
    listing_key,
    name_of,
    thumbnail_folder,
    upload_key,
)

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of artifact; its name is the prefix of its keys."""

    name: str
    depth: int  # how many parts of a key name the file or folder that is deleted as one
    owned: Callable[[Session, Sequence[str]], set[str]]  # which of these a row refers to
    folders: tuple[str, ...]  # listed one at a time
    shared: bool = False  # a new row may refer to files that exist already

    def min_age_seconds(self, settings: Settings) -> float:
        """Longer than any writer takes between a file and the row that refers to it."""
        hours = settings.orphan_hours
        sent = self.name in (UPLOADS, LISTINGS)
        return _HOUR * (max(hours, settings.upload_hours) if sent else hours)


def _owned_blobs(session: Session, keys: Sequence[str]) -> set[str]:
    return {blob_key(sha256) for sha256 in _image_hashes(session, keys)}


def _owned_thumbnails(session: Session, folders: Sequence[str]) -> set[str]:
    return {thumbnail_folder(sha256) for sha256 in _image_hashes(session, folders)}


def _image_hashes(session: Session, keys: Sequence[str]) -> set[str]:
    hashes = [name_of(key) for key in keys]
    return {
        sha256
        for column in (Image.sha256, RefusedImage.sha256)
        for sha256 in session.scalars(select(column).where(column.in_(hashes)).distinct())
    }


def _owned_embeddings(session: Session, folders: Sequence[str]) -> set[str]:
    """Features of clusterings and datasets, except those that newer ones have superseded."""
    of_clusterings = select(Clustering.embedding_folder).where(
        Clustering.embedding_folder.in_(folders)
    )
    of_datasets = select(Embedding.folder).where(Embedding.folder.in_(folders), ~_superseded())
    return {
        folder
        for query in (of_datasets, of_clusterings)
        for folder in session.scalars(query)
        if folder is not None
    }


def _superseded() -> ColumnElement[bool]:
    """The images changed, were embedded again, and no open job may be copying the old rows."""
    current = aliased(Embedding)
    return (
        exists()
        .where(
            current.dataset_id == Embedding.dataset_id,
            current.backbone_key == Embedding.backbone_key,
            current.fingerprint != Embedding.fingerprint,
            Dataset.id == Embedding.dataset_id,
            Dataset.fingerprint == current.fingerprint,
            ~exists().where(Job.dataset_id == Dataset.id, Job.status.in_(OPEN)),
        )
        .correlate(Embedding)
    )


def _owned_job_folders(session: Session, folders: Sequence[str]) -> set[str]:
    return {job_folder(job_id) for job_id in session.scalars(_jobs(folders))}


def _owned_models(session: Session, folders: Sequence[str]) -> set[str]:
    # Open jobs first: one that ends between the two queries has its version by then.
    open_jobs = set(session.scalars(_open_jobs(folders)))
    named = select(ModelVersion.folder).where(ModelVersion.folder.in_(folders))
    kept = {folder for folder in folders if id_of(folder) in open_jobs}
    return kept | set(session.scalars(named))


def _owned_exports(session: Session, keys: Sequence[str]) -> set[str]:
    open_jobs = set(session.scalars(_open_jobs(keys)))
    named = select(Export.storage_key).where(Export.storage_key.in_(keys))
    return {key for key in keys if id_of(key) in open_jobs} | set(session.scalars(named))


def _owned_uploads(session: Session, keys: Sequence[str]) -> set[str]:
    """Uploads and listings: of uploads that have not expired, and of open ingest jobs."""
    ids = select(Upload.id).where(Upload.id.in_([id_of(key) for key in keys]))
    kept = {upload_key(upload_id) for upload_id in session.scalars(ids)}
    jobs = select(Job.id, Job.config).where(Job.kind == "ingest", Job.status.in_(OPEN))
    for job_id, config in session.execute(jobs):
        kept |= {str(config["source"].get("key")), listing_key(job_id)}
    return kept & set(keys)


def _jobs(keys: Sequence[str]) -> Select[str]:
    return select(Job.id).where(Job.id.in_({id_of(key) for key in keys}))


def _open_jobs(keys: Sequence[str]) -> Select[str]:
    return _jobs(keys).where(Job.status.in_(OPEN))


def _by_hash(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}/{first:02x}" for first in range(256))


BLOB_KIND = Kind(name=BLOBS, depth=3, owned=_owned_blobs, folders=_by_hash(BLOBS))
KINDS = (
    BLOB_KIND,
    Kind(name=THUMBNAILS, depth=3, owned=_owned_thumbnails, folders=_by_hash(THUMBNAILS)),
    Kind(name=EMBEDDINGS, depth=2, owned=_owned_embeddings, folders=(EMBEDDINGS,), shared=True),
    Kind(name=JOBS, depth=2, owned=_owned_job_folders, folders=(JOBS,)),
    Kind(name=MODELS, depth=2, owned=_owned_models, folders=(MODELS,)),
    Kind(name=EXPORTS, depth=3, owned=_owned_exports, folders=(EXPORTS,)),
    Kind(name=UPLOADS, depth=2, owned=_owned_uploads, folders=(UPLOADS,)),
    Kind(name=LISTINGS, depth=2, owned=_owned_uploads, folders=(LISTINGS,)),
)
