"""Who needs the files of the storage to stay."""

from sqlalchemy import Double, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.tables.base import Base, created_at_column, id_column


class RetentionLock(Base):
    """While one has not run out, no file is removed from the storage."""

    __tablename__ = "retention_locks"

    id: Mapped[str] = id_column()
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = created_at_column()
    expires_at: Mapped[float] = mapped_column(Double())
