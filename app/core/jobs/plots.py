"""Plots of a job. Data is loaded first; drawing needs no database."""

from functools import partial
from math import exp, nan

from sqlalchemy.orm import Session

from app.core.clusterings.plots import Drawing
from app.core.jobs.queries import select_curve_points
from app.core.platform.errors import NotFound
from app.core.platform.tables import Job, JobCurve
from temi.analysis.choice import doubt
from temi.analysis.plots import SweepFigures, plot_sweep


def load_sweep_plot(session: Session, job: Job) -> Drawing:
    """Loads the finished points of a sweep; raises NotFound if there are none."""
    if job.kind != "sweep":
        raise NotFound(f"The job {job.id} is of kind {job.kind}: only a sweep has this plot.")
    rows = session.scalars(select_curve_points(job.id, after=0).order_by(JobCurve.step)).all()
    if not rows:
        raise NotFound(f"The sweep {job.id} has finished no value yet.")
    points = [(row.values, job.config["train"][row.step - 1]["n_clusters"]) for row in rows]
    parameter = job.config["parameter"]
    figures = SweepFigures(
        parameter=parameter,
        values=[values[parameter] for values, _ in points],
        doubt=[doubt(values["conditional_entropy"], count) for values, count in points],
        confidence=[values["mean_probability"] for values, _ in points],
        stability=[_or_nan(values.get("stability")) for values, _ in points],
        evenness=[exp(-values["size_kl"]) for values, _ in points],
        accuracy=[_or_nan(values["accuracy"]) for values, _ in points],
        suggested=(job.result or {}).get("suggested"),
    )
    return partial(plot_sweep, figures)


def _or_nan(value: float | None) -> float:
    return nan if value is None else value
