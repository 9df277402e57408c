"""API keys: create, list, revoke. A key is shown once; only its SHA-256 is stored."""

import hashlib
import re
import secrets
from collections.abc import Sequence

from sqlalchemy import Select, inspect, select
from sqlalchemy.orm import Session

from app.core.platform.actor import SCOPES
from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import ApiKey

_PREFIX = "temi_"  # lets people and secret scanners recognize it
_RANDOM_BYTES = 32
_FORM = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")
_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_DAY = 86_400.0


def create_key(
    session: Session,
    *,
    tenant: str,
    name: str,
    scopes: Sequence[str],
    expires_in_days: int | None = None,
    requests_per_minute: int | None = None,
    storage_bytes: int | None = None,
) -> tuple[ApiKey, str]:
    """Returns the row and the key itself, which is not stored."""
    if not _TENANT.fullmatch(tenant):
        raise InvalidRequest.field(
            "tenant",
            "use 1 to 64 of a-z, 0-9, '.', '_', '-', starting with a letter or digit, "
            f"not {tenant[:100]!r}",
        )
    if not 1 <= len(name) <= 200:
        raise InvalidRequest.field("name", f"must have 1 to 200 characters, not {len(name)}")
    if not scopes or not set(scopes) <= set(SCOPES):
        given = ", ".join(scopes) or "none"
        raise InvalidRequest.field("scopes", f"must be some of {', '.join(SCOPES)}, not {given}")
    text = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    key = ApiKey(
        id=new_id("key"),
        tenant=tenant,
        name=name,
        sha256=hash_key(text),
        scopes=[scope for scope in SCOPES if scope in scopes],
        expires_at=None if expires_in_days is None else db_now() + expires_in_days * _DAY,
        requests_per_minute=requests_per_minute,
        storage_bytes=storage_bytes,
    )
    session.add(key)
    session.flush()
    session.refresh(key)
    return key, text


def select_keys(tenant: str) -> Select[ApiKey]:
    """Keys of the tenant, revoked ones included."""
    return select(ApiKey).where(ApiKey.tenant == tenant)


def revoke_key(session: Session, key_id: str, *, tenant: str | None = None) -> ApiKey:
    """Revokes a key permanently. With `tenant`, only a key of that tenant."""
    query = select(ApiKey).where(ApiKey.id == key_id).with_for_update()
    key = session.scalar(query if tenant is None else query.where(ApiKey.tenant == tenant))
    if key is None:
        raise NotFound(f"There is no key {key_id}.")
    if key.revoked_at is None:
        key.revoked_at = session.scalar(select(db_now()))
        session.flush()
    return key


def has_keys(session: Session) -> bool:
    """Counts revoked keys, too: revoking the last key must not open the service."""
    return session.scalar(select(ApiKey.id).limit(1)) is not None


def database_has_keys(db: Database) -> bool:
    """As `has_keys`, for a database that may have no tables yet."""
    with db.read() as session:
        tables = inspect(session.connection()).get_table_names()
        return ApiKey.__tablename__ in tables and has_keys(session)


def hash_key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def looks_like_key(text: str) -> bool:
    return _FORM.fullmatch(text) is not None
