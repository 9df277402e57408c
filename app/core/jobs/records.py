"""The log and the training curves of a job.

A writer has locked the job's row (by `check_fence`, or by the update that claimed or ended it), so
lines are numbered without gaps and a worker that lost the job adds none.
"""

import math
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.core.platform.tables import JobCurve, JobLog

MAX_LINES = 10_000  # per job
LAST_LINES = 100  # of these, reserved for the life cycle and the end of the job
MAX_CHARACTERS = 2_000  # per line
_LEVELS = ("debug", "info", "warning", "error")


def add_log(
    session: Session,
    job_id: str,
    message: str,
    level: str = "info",
    *,
    max_lines: int = MAX_LINES,
) -> None:
    """Drops lines beyond `max_lines`; the last one that is kept says so."""
    if level not in _LEVELS:
        raise ValueError(f"level must be one of {', '.join(_LEVELS)}, not {level!r}")
    written = session.scalar(select(func.max(JobLog.number)).where(JobLog.job_id == job_id)) or 0
    if written >= max_lines:
        return
    if written == max_lines - 1:
        level, message = "warning", "The log is full; further lines are left out."
    session.add(JobLog(job_id=job_id, number=written + 1, level=level, message=_to_text(message)))
    session.flush()


def add_curve(session: Session, job_id: str, step: int, values: dict[str, Any]) -> None:
    """Replaces a point of the same step, so that a resumed run adds none twice."""
    session.merge(JobCurve(job_id=job_id, step=step, values=_to_json(values)))
    session.flush()


def delete_curve_after(session: Session, job_id: str, step: int) -> None:
    """Deletes the points that a run which resumes from a checkpoint will add again."""
    session.execute(delete(JobCurve).where(JobCurve.job_id == job_id, JobCurve.step > step))


def _to_text(message: str) -> str:
    """Removes what PostgreSQL refuses: zero bytes, and file names that are not UTF-8."""
    text = message.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def _to_json(value: Any) -> Any:
    """Converts values of numpy and torch to Python's, and NaN and infinity to None."""
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if hasattr(value, "tolist"):
        return _to_json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
