"""Queries for lists of jobs, log lines and curve points."""

from sqlalchemy import Select, select

from app.core.platform.tables import Job, JobCurve, JobLog


def select_jobs(
    tenant: str, *, kind: str | None, status: str | None, dataset_id: str | None
) -> Select[Job]:
    query = select(Job).where(Job.tenant == tenant)
    if kind:
        query = query.where(Job.kind == kind)
    if status:
        query = query.where(Job.status == status)
    if dataset_id:
        query = query.where(Job.dataset_id == dataset_id)
    return query


def select_log_lines(job_id: str, *, after: int) -> Select[JobLog]:
    return select(JobLog).where(JobLog.job_id == job_id, JobLog.number > after)


def select_curve_points(job_id: str, *, after: int) -> Select[JobCurve]:
    return select(JobCurve).where(JobCurve.job_id == job_id, JobCurve.step > after)
