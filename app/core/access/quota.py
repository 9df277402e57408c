"""The storage quota of a key: how many bytes its tenant may have before it adds no more."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.platform.actor import Actor
from app.core.platform.clock import db_now
from app.core.platform.errors import QuotaExceeded
from app.core.platform.tables import (
    ApiKey,
    Dataset,
    IdempotencyKey,
    Model,
    ModelVersion,
    RefusedImage,
    Upload,
)


def check_quota(session: Session, actor: Actor, added: int = 0) -> None:
    """Raises QuotaExceeded if the quota is used up, or would be exceeded by `added` bytes."""
    if actor.storage_bytes is not None:
        _check(stored_bytes(session, actor.tenant), added, actor.storage_bytes)


def check_upload_quota(session: Session, actor: Actor, length: int) -> None:
    """As `check_quota`, with the uploads that are in progress."""
    if actor.storage_bytes is not None:
        in_progress = select(func.sum(Upload.length)).where(
            Upload.tenant == actor.tenant, Upload.expires_at > db_now()
        )
        uploading = int(session.scalar(in_progress) or 0)
        _check(stored_bytes(session, actor.tenant), uploading + length, actor.storage_bytes)


def check_growth(session: Session, tenant: str, added: int, limit: int) -> None:
    """Called while data arrives: `added` is its size so far."""
    stored = stored_bytes(session, tenant)
    if stored + added > limit:
        raise _exceeded(stored + added, limit)


def quota_of(session: Session, key_id: str | None) -> int | None:
    """The quota of the key that created a job, which may be revoked by now."""
    if key_id is None:
        return None
    return session.scalar(select(ApiKey.storage_bytes).where(ApiKey.id == key_id))


def stored_bytes(session: Session, tenant: str) -> int:
    """Size of images, refused ones too, and imported models; what the service computes does not
    count."""
    images = select(func.sum(Dataset.bytes)).where(Dataset.tenant == tenant)
    models = (
        select(func.sum(ModelVersion.bytes))
        .join(Model, Model.id == ModelVersion.model_id)
        .where(Model.tenant == tenant)
    )
    refused = select(func.sum(RefusedImage.bytes)).where(
        RefusedImage.tenant == tenant,
        RefusedImage.image_id.is_(None),  # the others are images of a dataset
    )
    return sum(int(session.scalar(query) or 0) for query in (images, models, refused))


def was_answered(session: Session, tenant: str, idempotency_key: str | None) -> bool:
    """Whether the request is a repetition, which adds nothing."""
    if idempotency_key is None:
        return False
    return session.get(IdempotencyKey, (tenant, idempotency_key)) is not None


def _check(stored: int, added: int, limit: int) -> None:
    if stored >= limit or stored + added > limit:
        raise _exceeded(stored + added, limit)


def _exceeded(wanted: int, limit: int) -> QuotaExceeded:
    return QuotaExceeded(
        f"This key may store {limit:,} bytes of images and imported models, and this would make "
        f"{wanted:,}. Delete data, or use a key with a larger quota."
    )
