"""The tables. Times are seconds since 1970 by the database's clock."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Double, ForeignKey, Index, MetaData, String, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.core.clock import db_now

Json = JSON().with_variant(JSONB(), "postgresql")


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy declares it as an instance's
        dict[str, Any]: Json,
        list[Any]: Json,
        float: Double(),
    }


def _id() -> Mapped[str]:
    return mapped_column(String(40), primary_key=True)


def _tenant() -> Mapped[str]:
    return mapped_column(String(64), index=True)


def _created_at() -> Mapped[float]:
    return mapped_column(Double(), default=db_now())


class Dataset(Base):
    __tablename__ = "datasets"

    id: Mapped[str] = _id()
    tenant: Mapped[str] = _tenant()
    name: Mapped[str] = mapped_column(String(200))
    status: Mapped[str] = mapped_column(String(16), default="ingesting")
    labels_from: Mapped[str] = mapped_column(String(16), default="none")
    upload_key: Mapped[str] = mapped_column(String(200))
    fingerprint: Mapped[str | None] = mapped_column(String(64))
    image_count: Mapped[int] = mapped_column(default=0)
    issue_count: Mapped[int] = mapped_column(default=0)
    labelled_count: Mapped[int] = mapped_column(default=0)
    bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[float] = _created_at()


class Image(Base):
    __tablename__ = "images"
    __table_args__ = (
        Index("ix_images_dataset_id_position", "dataset_id", "position", unique=True),
    )

    id: Mapped[str] = _id()
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    position: Mapped[int]  # of the member in the upload
    name: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    width: Mapped[int]
    height: Mapped[int]
    format: Mapped[str] = mapped_column(String(16))
    bytes: Mapped[int] = mapped_column(BigInteger)
    label: Mapped[str | None] = mapped_column(Text)
    notes: Mapped[list[Any]] = mapped_column(Json, default=list)


class DatasetIssue(Base):
    __tablename__ = "dataset_issues"
    __table_args__ = (
        Index("ix_dataset_issues_dataset_id_position", "dataset_id", "position", unique=True),
    )

    id: Mapped[str] = _id()
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    position: Mapped[int]
    name: Mapped[str] = mapped_column(Text)
    code: Mapped[str] = mapped_column(String(40))
    detail: Mapped[str] = mapped_column(Text)


class Job(Base):
    """The truth about a job. Only the holder of the current `fence` may change a running one."""

    __tablename__ = "jobs"

    id: Mapped[str] = _id()
    tenant: Mapped[str] = _tenant()
    kind: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16), default="queued")
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    dataset_fingerprint: Mapped[str | None] = mapped_column(String(64))
    config: Mapped[dict[str, Any]]
    stages: Mapped[list[Any]] = mapped_column(Json)
    stage: Mapped[str | None] = mapped_column(String(16))
    completed: Mapped[int] = mapped_column(BigInteger, default=0)
    total: Mapped[int] = mapped_column(BigInteger, default=0)
    failed: Mapped[int] = mapped_column(BigInteger, default=0)
    rate: Mapped[float | None]
    timings: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    version: Mapped[int] = mapped_column(default=1)  # grows with every write: the event id
    fence: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[float] = mapped_column(Double(), default=0.0)
    worker: Mapped[str | None] = mapped_column(String(200))
    crashes: Mapped[int] = mapped_column(default=0)  # since the last progress
    hints: Mapped[int] = mapped_column(default=0)  # messages sent since the last claim
    hint_at: Mapped[float] = mapped_column(Double(), default=0.0)  # when the next one is due
    created_at: Mapped[float] = _created_at()
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]

    __table_args__ = (Index("ix_jobs_status_hint_at", "status", "hint_at"),)


class IdempotencyKey(Base):
    """Written in the transaction of what it guards; there is no half-done state to clean up."""

    __tablename__ = "idempotency_keys"

    tenant: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    request_hash: Mapped[str] = mapped_column(String(64))
    response: Mapped[dict[str, Any]]
    created_at: Mapped[float] = _created_at()


class Clustering(Base):
    __tablename__ = "clusterings"

    id: Mapped[str] = _id()
    tenant: Mapped[str] = _tenant()
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), unique=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    model_name: Mapped[str] = mapped_column(String(100))
    model_version: Mapped[int]
    n_clusters: Mapped[int]
    image_count: Mapped[int]
    revision: Mapped[int] = mapped_column(default=1)
    metrics: Mapped[dict[str, Any]]
    created_at: Mapped[float] = _created_at()


class Cluster(Base):
    __tablename__ = "clusters"

    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), primary_key=True
    )
    cluster_id: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(String(200))
    size: Mapped[int]
    mean_probability: Mapped[float | None]
    examples: Mapped[list[Any]] = mapped_column(Json)


class Assignment(Base):
    __tablename__ = "assignments"
    __table_args__ = (
        Index(
            "ix_assignments_clustering_id_cluster_id_image_id",
            "clustering_id",
            "cluster_id",
            "image_id",
        ),
    )

    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), primary_key=True
    )
    image_id: Mapped[str] = mapped_column(
        ForeignKey("images.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    cluster_id: Mapped[int]
    probability: Mapped[float]


class Model(Base):
    __tablename__ = "models"
    __table_args__ = (Index("ix_models_tenant_name", "tenant", "name", unique=True),)

    id: Mapped[str] = _id()
    tenant: Mapped[str] = _tenant()
    name: Mapped[str] = mapped_column(String(100))
    latest_version: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[float] = _created_at()


class ModelVersion(Base):
    """Immutable: the manifest and the hashes of its files never change."""

    __tablename__ = "model_versions"

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    version: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), unique=True)
    clustering_id: Mapped[str] = mapped_column(String(40))
    folder: Mapped[str] = mapped_column(String(200))
    manifest: Mapped[dict[str, Any]]
    files: Mapped[dict[str, Any]]  # name -> sha256
    created_at: Mapped[float] = _created_at()


class ModelAlias(Base):
    __tablename__ = "model_aliases"

    model_id: Mapped[str] = mapped_column(
        ForeignKey("models.id", ondelete="CASCADE"), primary_key=True
    )
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int]
    updated_at: Mapped[float] = mapped_column(Double(), default=db_now(), onupdate=db_now())
