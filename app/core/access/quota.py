"""How much a tenant may hold, as far as one of its keys may add to it."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.platform.actor import Actor
from app.core.platform.clock import db_now
from app.core.platform.errors import QuotaExceeded
from app.core.platform.tables import ApiKey, Dataset, IdempotencyKey, Model, ModelVersion, Upload


def check_room(session: Session, actor: Actor, announced: int = 0) -> None:
    """Refuse more once the tenant's quota is used, or would be by what is announced."""
    if actor.storage_bytes is not None:
        held = held_bytes(session, actor.tenant)
        _check(held, announced, actor.storage_bytes)


def check_room_for_upload(session: Session, actor: Actor, length: int) -> None:
    """The same, with all uploads that are still under way."""
    if actor.storage_bytes is not None:
        under_way = select(func.sum(Upload.length)).where(
            Upload.tenant == actor.tenant, Upload.expires_at > db_now()
        )
        held = held_bytes(session, actor.tenant)
        _check(held, int(session.scalar(under_way) or 0) + length, actor.storage_bytes)


def check_growth(session: Session, tenant: str, added: int, limit: int) -> None:
    """For what is being taken in: `added` is what it has brought so far."""
    held = held_bytes(session, tenant)
    if held + added > limit:
        raise QuotaExceeded(_told(held + added, limit))


def quota_of(session: Session, key_id: str | None) -> int | None:
    """Of the key that created a job; it may have been revoked since."""
    if key_id is None:
        return None
    return session.scalar(select(ApiKey.storage_bytes).where(ApiKey.id == key_id))


def held_bytes(session: Session, tenant: str) -> int:
    """Of images and of imported models; what the service makes of them does not count."""
    images = select(func.sum(Dataset.bytes)).where(Dataset.tenant == tenant)
    models = (
        select(func.sum(ModelVersion.bytes))
        .join(Model, Model.id == ModelVersion.model_id)
        .where(Model.tenant == tenant)
    )
    return sum(int(session.scalar(query) or 0) for query in (images, models))


def was_answered(session: Session, tenant: str, idempotency_key: str | None) -> bool:
    """A request that is sent again adds nothing."""
    if idempotency_key is None:
        return False
    return session.get(IdempotencyKey, (tenant, idempotency_key)) is not None


def _check(held: int, announced: int, limit: int) -> None:
    if held >= limit or held + announced > limit:
        raise QuotaExceeded(_told(held + announced, limit))


def _told(wanted: int, limit: int) -> str:
    return (
        f"This key may fill {limit:,} bytes with images and imported models, and this would make "
        f"{wanted:,}. "
        "Delete what is no longer needed, or ask for more."
    )
