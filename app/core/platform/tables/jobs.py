"""Jobs with their logs, curves and webhooks, and idempotency keys."""

from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, Json, created_at_column, id_column, tenant_column

OPEN = ("queued", "running", "cancelling")  # statuses of a job that is not finished
FINAL = ("cancelled", "succeeded", "failed")


class Job(Base):
    """A job. Only the worker with the current `fence` may change a running one."""

    __tablename__ = "jobs"

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    kind: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16), default="queued")
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    dataset_fingerprint: Mapped[str | None] = mapped_column(String(64))
    config: Mapped[dict[str, Any]]
    priority: Mapped[int] = mapped_column(default=0)  # higher is claimed first
    webhook_url: Mapped[str | None] = mapped_column(Text)
    created_by: Mapped[str | None] = mapped_column(String(40))  # id of the API key
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)  # of its training, estimated
    request_id: Mapped[str | None] = mapped_column(String(100))  # of the request that created it
    traceparent: Mapped[str | None] = mapped_column(String(64))  # W3C, for the worker's spans
    stages: Mapped[list[Any]] = mapped_column(Json)
    stage: Mapped[str | None] = mapped_column(String(16))
    completed: Mapped[int] = mapped_column(BigInteger, default=0)
    total: Mapped[int] = mapped_column(BigInteger, default=0)
    failed: Mapped[int] = mapped_column(BigInteger, default=0)
    skipped: Mapped[int] = mapped_column(BigInteger, default=0)  # files that are not images
    rate: Mapped[float | None]
    timings: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    version: Mapped[int] = mapped_column(default=1)  # incremented by every write: the event id
    fence: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[float] = mapped_column(Double(), default=0.0)
    worker: Mapped[str | None] = mapped_column(String(200))
    crashes: Mapped[int] = mapped_column(default=0)  # since the last progress
    notifications: Mapped[int] = mapped_column(default=0)  # messages sent since the last claim
    notify_at: Mapped[float] = mapped_column(Double(), default=0.0)  # when the next one is due
    created_at: Mapped[float] = created_at_column()
    queued_at: Mapped[float] = mapped_column(Double(), default=db_now())  # the last time
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]

    __table_args__ = (
        Index("ix_jobs_status_notify_at", "status", "notify_at"),
        Index("ix_jobs_status_kind_tenant", "status", "kind", "tenant"),  # whose turn it is
        Index("ix_jobs_status_priority_id", "status", "priority", "id"),
        Index("ix_jobs_status_kind_queued_at", "status", "kind", "queued_at"),
        Index("ix_jobs_dataset_id_status", "dataset_id", "status"),
        Index("ix_jobs_tenant_id", "tenant", "id"),  # this and the next three: pages of lists
        Index("ix_jobs_tenant_kind_id", "tenant", "kind", "id"),
        Index("ix_jobs_tenant_status_id", "tenant", "status", "id"),
        Index("ix_jobs_dataset_id_id", "dataset_id", "id"),
    )


class TenantTurn(Base):
    """When a job of the tenant was last claimed. It is kept when jobs are deleted, so that deleting
    jobs gains no earlier turn."""

    __tablename__ = "tenant_turns"

    tenant: Mapped[str] = mapped_column(String(64), primary_key=True)
    served_at: Mapped[float] = mapped_column(Double(), default=0.0)


class JobLog(Base):
    """A log message of a job, shown to its user."""

    __tablename__ = "job_logs"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[float] = mapped_column(Double(), default=db_now())
    level: Mapped[str] = mapped_column(String(8), default="info")
    message: Mapped[str] = mapped_column(Text)


class JobCurve(Base):
    """A point of a training curve."""

    __tablename__ = "job_curves"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    values: Mapped[dict[str, Any]]


class WebhookDelivery(Base):
    """A webhook message, written when its job ends and sent by a worker."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (Index("ix_webhook_deliveries_status_due_at", "status", "due_at"),)

    id: Mapped[str] = id_column()
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    url: Mapped[str] = mapped_column(Text)
    body: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(String(16), default="waiting")  # delivered, given_up
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[float] = mapped_column(Double(), default=db_now())
    answer: Mapped[str | None] = mapped_column(Text)  # of the last attempt


class IdempotencyKey(Base):
    """Written in the transaction that it guards, so that no partial state is left."""

    __tablename__ = "idempotency_keys"

    tenant: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    request_hash: Mapped[str] = mapped_column(String(64))
    response: Mapped[dict[str, Any]]
    created_at: Mapped[float] = created_at_column()
