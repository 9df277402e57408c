"""API keys and the audit log."""

from datetime import datetime

from temi_client.models.base import ApiModel


class Key(ApiModel):
    id: str
    name: str
    scopes: list[str]
    requests_per_minute: int | None = None
    storage_bytes: int | None = None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class CreatedKey(Key):
    key: str  # returned only once


class AuditEntry(ApiModel):
    id: str
    at: datetime
    key_id: str | None = None
    key_name: str | None = None
    method: str
    route: str
    path: str
    request_id: str | None = None
