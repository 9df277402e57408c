"""API keys and the audit log."""

from typing import Any

from sqlalchemy import BigInteger, Double, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, Json, created_at_column, id_column, tenant_column


class ApiKey(Base):
    """Only the SHA-256 of the key is stored; the key itself is shown once."""

    __tablename__ = "api_keys"

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    name: Mapped[str] = mapped_column(String(200))
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[Any]] = mapped_column(Json)
    requests_per_minute: Mapped[int | None]  # None: no limit
    storage_bytes: Mapped[int | None] = mapped_column(BigInteger)  # quota of its tenant
    created_at: Mapped[float] = created_at_column()
    expires_at: Mapped[float | None]
    revoked_at: Mapped[float | None]


class AuditEntry(Base):
    """A request that changed rows; written in the same transaction."""

    __tablename__ = "audit_entries"
    __table_args__ = (Index("ix_audit_entries_tenant_id", "tenant", "id"),)

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = mapped_column(String(64))
    at: Mapped[float] = mapped_column(Double(), default=db_now())
    key_id: Mapped[str | None] = mapped_column(String(40))
    key_name: Mapped[str | None] = mapped_column(String(200))
    method: Mapped[str] = mapped_column(String(8))
    route: Mapped[str] = mapped_column(Text)  # /v1/datasets/{dataset_id}
    path: Mapped[str] = mapped_column(Text)  # /v1/datasets/ds_...
    request_id: Mapped[str | None] = mapped_column(String(100))
