"""Who works, and the pieces of a job that several of them share."""

from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base


class Worker(Base):
    """A worker process that is alive, as far as it was heard of."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    host: Mapped[str] = mapped_column(String(200))
    pid: Mapped[int]
    takes: Mapped[list[Any]]
    device: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(String(40))
    started_at: Mapped[float] = mapped_column(Double(), default=db_now())
    seen_at: Mapped[float] = mapped_column(Double(), default=db_now())
    job_id: Mapped[str | None] = mapped_column(String(40))  # that it works on now
    stage: Mapped[str | None] = mapped_column(String(16))


class Shard(Base):
    """A piece of a running job's stage that any worker may do. Held like a job: by lease and fence.

    What it makes is one file whose name says what is in it, so doing it twice does no harm.
    """

    __tablename__ = "shards"

    id: Mapped[str] = mapped_column(String(80), primary_key=True)  # job/stage/number
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    stage: Mapped[str] = mapped_column(String(16))
    number: Mapped[int]
    needs: Mapped[str] = mapped_column(String(8))
    priority: Mapped[int]  # of the job
    plan: Mapped[str] = mapped_column(Text)  # key of a file that says how to do it
    key: Mapped[str] = mapped_column(Text)  # of the file that it makes
    first: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int] = mapped_column(BigInteger)  # from the first on
    fence: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[float] = mapped_column(Double(), default=0.0)
    worker: Mapped[str | None] = mapped_column(String(200))
    crashes: Mapped[int] = mapped_column(default=0)
    done_at: Mapped[float | None]

    __table_args__ = (
        Index("ix_shards_done_at_priority", "done_at", "priority"),
        Index("ix_shards_job_id_stage_number", "job_id", "stage", "number"),
    )
