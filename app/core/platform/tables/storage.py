"""Deletion of stored files."""

from sqlalchemy import Double, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, created_at_column, id_column


class BlobDeletion(Base):
    """The bytes of a deleted image; they are deleted later unless another image has them, too."""

    __tablename__ = "blob_deletions"

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    scheduled_at: Mapped[float] = mapped_column(Double(), default=db_now(), index=True)


class RetentionLock(Base):
    """Until it expires, no file is deleted from the storage."""

    __tablename__ = "retention_locks"

    id: Mapped[str] = id_column()
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = created_at_column()
    expires_at: Mapped[float] = mapped_column(Double())
