"""Datasets: images, issues, duplicates, embeddings and uploads."""

from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, Json, created_at_column, id_column, tenant_column


class Dataset(Base):
    __tablename__ = "datasets"

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    name: Mapped[str] = mapped_column(String(200))
    status: Mapped[str] = mapped_column(String(16), default="ingesting")
    fingerprint: Mapped[str | None] = mapped_column(String(64))
    # Images below this position are in the dataset; the others belong to a running ingest.
    end_position: Mapped[int] = mapped_column(default=0)
    image_count: Mapped[int] = mapped_column(default=0)
    issue_count: Mapped[int] = mapped_column(default=0)
    skipped: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)  # files by reason
    labeled_count: Mapped[int] = mapped_column(default=0)
    bytes: Mapped[int] = mapped_column(BigInteger, default=0)  # of the images
    current_clustering_id: Mapped[str | None] = mapped_column(String(40))  # gives the labels
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[float] = created_at_column()
    updated_at: Mapped[float] = mapped_column(Double(), default=db_now(), onupdate=db_now())


class Image(Base):
    __tablename__ = "images"
    __table_args__ = (
        Index("ix_images_dataset_id_position", "dataset_id", "position", unique=True),
        Index("ix_images_dataset_id_sha256_position", "dataset_id", "sha256", "position"),
    )

    id: Mapped[str] = id_column()
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    position: Mapped[int]  # in the dataset; never reused
    name: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    width: Mapped[int]
    height: Mapped[int]
    format: Mapped[str] = mapped_column(String(16))
    bytes: Mapped[int] = mapped_column(BigInteger)
    label: Mapped[str | None] = mapped_column(Text)
    attributes: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)  # the user's metadata
    notes: Mapped[list[Any]] = mapped_column(Json, default=list)


class DatasetIssue(Base):
    __tablename__ = "dataset_issues"
    __table_args__ = (
        Index("ix_dataset_issues_dataset_id_position", "dataset_id", "position", unique=True),
    )

    id: Mapped[str] = id_column()
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    position: Mapped[int]
    name: Mapped[str] = mapped_column(Text)
    code: Mapped[str] = mapped_column(String(40))
    detail: Mapped[str] = mapped_column(Text)


class SkippedFiles(Base):
    """Number of files that an ingest skipped for one reason, because they are not images."""

    __tablename__ = "skipped_files"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    first_position: Mapped[int] = mapped_column(primary_key=True)  # of the ingest
    reason: Mapped[str] = mapped_column(String(16), primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    last_position: Mapped[int]  # of a file that is counted; a resumed ingest continues after it


class Duplicate(Base):
    """An image that is equal or similar to an earlier image of its dataset."""

    __tablename__ = "duplicates"
    __table_args__ = (
        Index("ix_duplicates_dataset_id_kind_image_id", "dataset_id", "kind", "image_id"),
        Index("ix_duplicates_dataset_id_image_id", "dataset_id", "image_id"),
    )

    image_id: Mapped[str] = mapped_column(
        ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    kind: Mapped[str] = mapped_column(String(8), primary_key=True)  # exact or near
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    original_id: Mapped[str] = mapped_column(
        ForeignKey("images.id", ondelete="CASCADE"), index=True
    )
    similarity: Mapped[float]  # 1 if exact, else the cosine of the two embeddings


class Embedding(Base):
    """Features of a dataset with this fingerprint. Later embeddings copy rows from them."""

    __tablename__ = "embeddings"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    backbone_key: Mapped[str] = mapped_column(String(64), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64), primary_key=True)
    folder: Mapped[str] = mapped_column(String(200), index=True)
    rows: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[float] = created_at_column()


class Upload(Base):
    """A resumable upload. Its offset is the size of its file."""

    __tablename__ = "uploads"

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    length: Mapped[int] = mapped_column(BigInteger)
    attributes: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)  # tus Upload-Metadata
    created_at: Mapped[float] = created_at_column()
    expires_at: Mapped[float] = mapped_column(Double(), index=True)
