"""The files that belong to the rows of a snapshot."""

from collections.abc import Iterator

from sqlalchemy import select, union_all
from sqlalchemy.orm import Session

from app.core.jobs.requests.ingest import upload_keys
from app.core.platform.tables import (
    OPEN,
    Clustering,
    Embedding,
    Export,
    Image,
    Job,
    ModelVersion,
    RefusedImage,
)
from app.core.storage import Storage
from app.core.storage.keys import (
    EMBEDDINGS,
    JOBS,
    LISTINGS,
    UPLOADS,
    blob_key,
    job_folder,
    parent_of,
    prefix_of,
)

FOLDER = "files/"
_ROWS = 10_000


def artifact_keys(session: Session, storage: Storage) -> Iterator[str]:
    """Models, exports and uploads, then features and files of jobs."""
    for version in session.scalars(select(ModelVersion)):
        yield from (f"{version.folder}/{name}" for name in version.files)
    yield from session.scalars(select(Export.storage_key))
    waiting = select(Job).where(Job.kind == "ingest", Job.status.in_(OPEN))
    for job in session.scalars(waiting):
        yield from filter(storage.exists, upload_keys(job))
    folders = set(session.scalars(select(Embedding.folder)))
    folders |= set(session.scalars(select(Clustering.embedding_folder)))
    folders |= {job_folder(job_id) for job_id in session.scalars(select(Job.id))}
    for root in (EMBEDDINGS, JOBS):
        for file in storage.list(root):
            if parent_of(file.key, 2) in folders:
                yield file.key


def may_vanish(key: str) -> bool:
    """Whether a running job may delete the file while the backup is created."""
    return prefix_of(key) in (JOBS, EMBEDDINGS, UPLOADS, LISTINGS)


def image_keys(session: Session) -> Iterator[str]:
    """Each key once: images with the same bytes share them."""
    hashes = union_all(select(Image.sha256), select(RefusedImage.sha256)).order_by("sha256")
    before = None
    for sha256 in session.scalars(hashes.execution_options(yield_per=_ROWS)):
        if sha256 != before:
            yield blob_key(sha256)
        before = sha256
