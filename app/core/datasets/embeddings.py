"""Embeddings of a dataset; later ones copy rows from them."""

from collections.abc import Sequence
from contextlib import suppress

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.platform.db import lock_name
from app.core.platform.tables import Embedding


def add_embedding(
    session: Session,
    *,
    dataset_id: str,
    backbone_key: str,
    fingerprint: str,
    folder: str,
    rows: int,
) -> None:
    """Adds the row unless it exists. Call it before the files are written, so that the collector
    does not delete them, and check after the commit whether files exist: it may be deleting them.
    """
    lock_name(session, folder)
    key = (dataset_id, backbone_key, fingerprint)
    if session.get(Embedding, key) is not None:
        return
    # Another job on the same images may be adding it.
    with suppress(IntegrityError), session.begin_nested():
        session.add(
            Embedding(
                dataset_id=dataset_id,
                backbone_key=backbone_key,
                fingerprint=fingerprint,
                folder=folder,
                rows=rows,
            )
        )


def earlier_folders(
    session: Session, dataset_id: str, backbone_key: str, *, exclude: str, limit: int
) -> Sequence[str]:
    """Folders of this dataset's other embeddings by the same backbone, newest first."""
    return session.scalars(
        select(Embedding.folder)
        .where(
            Embedding.dataset_id == dataset_id,
            Embedding.backbone_key == backbone_key,
            Embedding.folder != exclude,
        )
        .order_by(Embedding.created_at.desc())
        .limit(limit)
    ).all()
