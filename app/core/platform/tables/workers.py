"""Workers, and shards of jobs that several workers share."""

from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base


class Worker(Base):
    """A worker process, with its last heartbeat."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    host: Mapped[str] = mapped_column(String(200))
    pid: Mapped[int]
    takes: Mapped[list[Any]]
    device: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(String(40))
    started_at: Mapped[float] = mapped_column(Double(), default=db_now())
    seen_at: Mapped[float] = mapped_column(Double(), default=db_now())
    job_id: Mapped[str | None] = mapped_column(String(40))  # that it runs now
    stage: Mapped[str | None] = mapped_column(String(16))


class Shard(Base):
    """A part of a running job's stage that any worker may claim, with lease and fence like a job.

    Its result is one file whose name determines its content, so computing it twice does no harm.
    """

    __tablename__ = "shards"

    id: Mapped[str] = mapped_column(String(80), primary_key=True)  # job/stage/number
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    stage: Mapped[str] = mapped_column(String(16))
    number: Mapped[int]
    needs: Mapped[str] = mapped_column(String(8))
    priority: Mapped[int]  # of the job
    plan: Mapped[str] = mapped_column(Text)  # key of a file with its parameters
    key: Mapped[str] = mapped_column(Text)  # of the file with its result
    first: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int] = mapped_column(BigInteger)  # starting at `first`
    fence: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[float] = mapped_column(Double(), default=0.0)
    worker: Mapped[str | None] = mapped_column(String(200))
    crashes: Mapped[int] = mapped_column(default=0)
    done_at: Mapped[float | None]

    __table_args__ = (
        Index("ix_shards_done_at_priority", "done_at", "priority"),
        Index("ix_shards_job_id_stage_number", "job_id", "stage", "number"),
    )
