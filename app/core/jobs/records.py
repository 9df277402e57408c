"""What a job says while it runs: lines of a log and points of curves.

Whoever writes holds the job's row locked (`check_fence`, or the update that claimed or ended it),
so lines are numbered without gaps and no worker that lost the job adds to them.
"""

import math
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.core.platform.tables import JobCurve, JobLog

MOST_LINES = 10_000  # a job
LAST_LINES = 100  # of these kept for how the job went on and ended
MOST_CHARACTERS = 2_000  # a line
_LEVELS = ("debug", "info", "warning", "error")


def add_log(
    session: Session,
    job_id: str,
    message: str,
    level: str = "info",
    *,
    most_lines: int = MOST_LINES,
) -> None:
    """Lines beyond `most_lines` are left out; the last one says so."""
    if level not in _LEVELS:
        raise ValueError(f"level must be one of {', '.join(_LEVELS)}, not {level!r}")
    written = session.scalar(select(func.max(JobLog.number)).where(JobLog.job_id == job_id)) or 0
    if written >= most_lines:
        return
    if written == most_lines - 1:
        level, message = "warning", "There is more to say than is kept; further lines are left out."
    session.add(JobLog(job_id=job_id, number=written + 1, level=level, message=_storable(message)))
    session.flush()


def add_curve(session: Session, job_id: str, step: int, values: dict[str, Any]) -> None:
    """A point of the same step is replaced: a run that was taken up again does not double."""
    session.merge(JobCurve(job_id=job_id, step=step, values=_plain(values)))
    session.flush()


def forget_curve_after(session: Session, job_id: str, step: int) -> None:
    """A run that goes on from a checkpoint will draw what came after it once more."""
    session.execute(delete(JobCurve).where(JobCurve.job_id == job_id, JobCurve.step > step))


def _storable(message: str) -> str:
    """PostgreSQL takes no zero byte, and a file's name may hold what is no UTF-8."""
    text = message.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


def _plain(value: Any) -> Any:
    """As JSON can hold it: numbers of numpy and torch as Python's, what is no number as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
