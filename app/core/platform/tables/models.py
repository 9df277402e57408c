"""The model registry."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, created_at_column, id_column, tenant_column


class Model(Base):
    __tablename__ = "models"
    __table_args__ = (Index("ix_models_tenant_name", "tenant", "name", unique=True),)

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    name: Mapped[str] = mapped_column(String(100))
    last_number: Mapped[int] = mapped_column(default=0)  # of a version; never reused
    latest_version: Mapped[int | None]  # None once all were deleted
    created_at: Mapped[float] = created_at_column()


class ModelVersion(Base):
    """A version; its manifest and the hashes of its files never change."""

    __tablename__ = "model_versions"

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    version: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[str | None] = mapped_column(  # a sweep has several
        ForeignKey("jobs.id", ondelete="SET NULL"), index=True
    )
    clustering_id: Mapped[str | None] = mapped_column(String(40))  # None if it was imported
    folder: Mapped[str] = mapped_column(String(200))
    manifest: Mapped[dict[str, Any]]
    files: Mapped[dict[str, Any]]  # name -> sha256
    bytes: Mapped[int] = mapped_column(  # of imported files, which count against the quota
        BigInteger, default=0, server_default="0"
    )
    created_at: Mapped[float] = created_at_column()
    served_at: Mapped[float | None] = mapped_column(Double())  # models in use are preloaded


class ModelAlias(Base):
    __tablename__ = "model_aliases"

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int]
    updated_at: Mapped[float] = mapped_column(Double(), default=db_now(), onupdate=db_now())


class ModelAliasChange(Base):
    """A change of an alias; rows are never updated."""

    __tablename__ = "model_alias_changes"
    __table_args__ = (Index("ix_model_alias_changes_model_id_alias", "model_id", "alias"),)

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)  # 1, 2, ... of all aliases of the model
    alias: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(16))  # set, rollback or remove
    before: Mapped[int | None]
    version: Mapped[int | None]  # None: the alias was removed
    changed_by: Mapped[str | None] = mapped_column(String(200))  # the key's name; None: no key
    changed_at: Mapped[float] = mapped_column(Double(), default=db_now())


class ModelCalibration(Base):
    """A map of a version's probabilities, fitted to reviews; the newest is used. Rows are never
    updated."""

    __tablename__ = "model_calibrations"
    __table_args__ = (
        ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            ondelete="CASCADE",
        ),
    )

    model_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)  # 1, 2, ... of the version
    slope: Mapped[float]
    intercept: Mapped[float]
    reviews: Mapped[int]  # that it was fitted to
    error_before: Mapped[float]  # expected calibration error on them by the map before it
    error_after: Mapped[float]  # each review by a map that was fitted to others
    created_by: Mapped[str | None] = mapped_column(String(200))  # the key's name; None: no key
    created_at: Mapped[float] = created_at_column()


class PredictionCount(Base):
    """Images that a version has labeled on a day, by cluster, probability and novelty."""

    __tablename__ = "prediction_counts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            ondelete="CASCADE",
        ),
    )

    model_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    day: Mapped[int] = mapped_column(primary_key=True)  # since 1970, UTC
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)  # what the bucket is of
    bucket: Mapped[int] = mapped_column(primary_key=True)  # cluster, or a tenth of the range
    images: Mapped[int] = mapped_column(BigInteger)
