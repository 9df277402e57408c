"""The model registry."""

from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, created_at_column, id_column, tenant_column


class Model(Base):
    __tablename__ = "models"
    __table_args__ = (Index("ix_models_tenant_name", "tenant", "name", unique=True),)

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    name: Mapped[str] = mapped_column(String(100))
    last_number: Mapped[int] = mapped_column(default=0)  # given to a version; never twice
    latest_version: Mapped[int | None]  # the newest that is left; none once all were deleted
    created_at: Mapped[float] = created_at_column()


class ModelVersion(Base):
    """The manifest and the hashes of its files never change."""

    __tablename__ = "model_versions"

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    version: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[str | None] = mapped_column(
        ForeignKey("jobs.id", ondelete="SET NULL"), unique=True
    )
    clustering_id: Mapped[str | None] = mapped_column(String(40))  # none if it was imported
    folder: Mapped[str] = mapped_column(String(200))
    manifest: Mapped[dict[str, Any]]
    files: Mapped[dict[str, Any]]  # name -> sha256
    bytes: Mapped[int] = mapped_column(  # of the files, if they were imported: they fill a quota
        BigInteger, default=0, server_default="0"
    )
    created_at: Mapped[float] = created_at_column()
    served_at: Mapped[float | None] = mapped_column(Double())  # lately; what is in use is kept warm


class ModelAlias(Base):
    __tablename__ = "model_aliases"

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int]
    updated_at: Mapped[float] = mapped_column(Double(), default=db_now(), onupdate=db_now())


class ModelAliasChange(Base):
    """Every move of an alias: from where to where, by whom and when. Never changed."""

    __tablename__ = "model_alias_changes"
    __table_args__ = (Index("ix_model_alias_changes_model_id_alias", "model_id", "alias"),)

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)  # 1, 2, ... of all aliases of the model
    alias: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(16))  # set, rollback or remove
    before: Mapped[int | None]
    version: Mapped[int | None]  # none: the alias was removed
    changed_by: Mapped[str | None] = mapped_column(String(200))  # the key's name; none: no key
    changed_at: Mapped[float] = mapped_column(Double(), default=db_now())
