"""Who refers to which files: every kind of artifact, by the first part of its key."""

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
    Upload,
)
from app.core.storage import blob_key

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Kind:
    """`owned` tells which of some keys or folders something refers to.

    A kind is cut into `folders` that are looked at one at a time.
    """

    name: str
    whole: int  # how many parts of a key make what comes and goes as one
    owned: Callable[[Session, Sequence[str]], set[str]]
    folders: tuple[str, ...]
    shared: bool = False  # a new owner may turn up for files that are already there

    def guard_seconds(self, settings: Settings) -> float:
        """No writer leaves more time between a file and what refers to it."""
        hours = settings.orphan_hours
        return _HOUR * (max(hours, settings.upload_hours) if self.name in _SENT else hours)


def _images(session: Session, keys: Sequence[str]) -> set[str]:
    used = _hashes(session, [key.rsplit("/", 1)[1] for key in keys])
    return {blob_key(sha256) for sha256 in used}


def _thumbnails(session: Session, keys: Sequence[str]) -> set[str]:
    """Folders, one for the thumbnails of an image."""
    of = {key: key.rsplit("/", 1)[1] for key in keys}
    used = _hashes(session, list(of.values()))
    return {key for key, sha256 in of.items() if sha256 in used}


def _hashes(session: Session, hashes: Sequence[str]) -> set[str]:
    return set(session.scalars(select(Image.sha256).where(Image.sha256.in_(hashes)).distinct()))


def _embeddings(session: Session, folders: Sequence[str]) -> set[str]:
    """Features of a dataset as it is or was, unless those of today have taken their place."""
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
    """The images have changed, were embedded anew, and no job may be copying from the old rows."""
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


def _jobs(session: Session, folders: Sequence[str]) -> set[str]:
    return _known(session, "jobs", folders, lambda ids: select(Job.id).where(Job.id.in_(ids)))


def _models(session: Session, folders: Sequence[str]) -> set[str]:
    # Open jobs first: one that ends in between has its version by then.
    kept = _of_open_jobs(session, "models", folders)
    named = select(ModelVersion.folder).where(ModelVersion.folder.in_(folders))
    return kept | set(session.scalars(named))


def _exports(session: Session, keys: Sequence[str]) -> set[str]:
    folders = {key: key.rsplit("/", 1)[0] for key in keys}
    open_jobs = _of_open_jobs(session, "exports", list(folders.values()))
    named = select(Export.storage_key).where(Export.storage_key.in_(keys))
    kept = {key for key, folder in folders.items() if folder in open_jobs}
    return kept | set(session.scalars(named))


def _sent(session: Session, keys: Sequence[str]) -> set[str]:
    """Uploads and listings: of a sender who goes on, or of an ingest that is not done."""
    ids = select(Upload.id).where(Upload.id.in_([key.split("/")[1] for key in keys]))
    kept = {f"uploads/{upload_id}" for upload_id in session.scalars(ids)}
    jobs = select(Job.id, Job.config).where(Job.kind == "ingest", Job.status.in_(OPEN))
    for job_id, config in session.execute(jobs):
        kept |= {str(config["source"].get("key")), f"listings/{job_id}.jsonl"}
    return kept & set(keys)


def _of_open_jobs(session: Session, root: str, folders: Sequence[str]) -> set[str]:
    def of(ids: Sequence[str]) -> Select[str]:
        return select(Job.id).where(Job.id.in_(ids), Job.status.in_(OPEN))

    return _known(session, root, folders, of)


def _known(
    session: Session,
    root: str,
    folders: Sequence[str],
    query: Callable[[Sequence[str]], Select[str]],
) -> set[str]:
    ids = [folder.split("/")[1] for folder in folders]
    return {f"{root}/{found}" for found in session.scalars(query(ids))}


def _cut(root: str) -> tuple[str, ...]:
    return tuple(f"{root}/{prefix:02x}" for prefix in range(256))


_SENT = ("uploads", "listings")
KINDS = (
    Kind(name="sha256", whole=3, owned=_images, folders=_cut("sha256")),
    Kind(name="thumbnails", whole=3, owned=_thumbnails, folders=_cut("thumbnails")),
    Kind(name="embeddings", whole=2, owned=_embeddings, folders=("embeddings",), shared=True),
    Kind(name="jobs", whole=2, owned=_jobs, folders=("jobs",)),
    Kind(name="models", whole=2, owned=_models, folders=("models",)),
    Kind(name="exports", whole=3, owned=_exports, folders=("exports",)),
    Kind(name="uploads", whole=2, owned=_sent, folders=("uploads",)),
    Kind(name="listings", whole=2, owned=_sent, folders=("listings",)),
)
