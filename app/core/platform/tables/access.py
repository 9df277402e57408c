"""Who may do what, and who did what."""

from typing import Any

from sqlalchemy import BigInteger, Double, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, Json, created_at_column, id_column, tenant_column


class ApiKey(Base):
    """The key itself is shown once and never stored: only its SHA-256 is."""

    __tablename__ = "api_keys"

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    name: Mapped[str] = mapped_column(String(200))
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[Any]] = mapped_column(Json)
    requests_per_minute: Mapped[int | None]  # none: as many as there are
    storage_bytes: Mapped[int | None] = mapped_column(BigInteger)  # most that its tenant may hold
    created_at: Mapped[float] = created_at_column()
    expires_at: Mapped[float | None]
    revoked_at: Mapped[float | None]


class AuditEntry(Base):
    """A request that changed something: written in the transaction of the change itself."""

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
