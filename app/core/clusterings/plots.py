"""Plots of a clustering. Data is loaded first; drawing needs no database."""

import io
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.statistics import cluster_sizes, confusion, rebinned, statistics
from app.core.platform.errors import NotFound
from app.core.platform.tables import Clustering, Job, JobCurve
from temi.analysis import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawing = Callable[[], "Figure"]

_BINS = 50
_CONFUSION_SIDE = 40  # maximum number of clusters and labels
_drawing = threading.Lock()  # one figure at a time: matplotlib shares caches between threads


def load_plot(session: Session, clustering: Clustering, name: str) -> Drawing:
    """Loads the data of a plot; raises NotFound if there is none."""
    return _LOADERS[name](session, clustering)


def render(drawing: Drawing, format_: str) -> bytes:
    """Draws PNG or SVG."""
    out = io.BytesIO()
    with _drawing:
        metadata = {"Date": None} if format_ == "svg" else None
        drawing().savefig(out, format=format_, dpi=150, metadata=metadata)
    return out.getvalue()


def _sizes(session: Session, clustering: Clustering) -> Drawing:
    found = cluster_sizes(session, clustering)
    return partial(
        plots.plot_cluster_sizes, [size for _, size in found], [name for name, _ in found]
    )


def _probabilities(session: Session, clustering: Clustering) -> Drawing:
    found = statistics(session, clustering)
    return partial(
        plots.plot_probability_counts,
        rebinned(found.probability_counts, _BINS),
        mean=found.mean_probability,
        median=found.median_probability,
    )


def _confusion(session: Session, clustering: Clustering) -> Drawing:
    found = confusion(session, clustering, max_side=_CONFUSION_SIDE)
    if found is None:
        raise NotFound(
            "No image of this clustering has a true label to compare with; true labels come with "
            "the upload (labels_from)."
        )
    return partial(plots.plot_confusion, found.counts, found.clusters, found.labels)


def _curves(session: Session, clustering: Clustering) -> Drawing:
    rows = session.execute(
        select(JobCurve.step, JobCurve.values)
        .join(Job, Job.id == JobCurve.job_id)
        .where(Job.id == clustering.job_id, Job.tenant == clustering.tenant)
        .order_by(JobCurve.step)
    )
    points = [(step, values) for step, values in rows if values.get("losses")]
    if not points:
        raise NotFound("The job of this clustering has no training curves, or was deleted.")
    use = [(step, values) for step, values in points if "occupancy_entropy" in values]
    curves = plots.TrainingCurves(
        steps=np.array([step for step, _ in points]),
        losses=np.array([values["losses"] for _, values in points], dtype=np.float64),
        use_steps=np.array([step for step, _ in use]),
        occupancy_entropy=_numbers(use, "occupancy_entropy"),
        conditional_entropy=_numbers(use, "conditional_entropy"),
        # operations change the number of clusters, but not that of the model
        max_entropy=clustering.metrics.get("max_entropy") or float(np.log(clustering.n_clusters)),
    )
    return partial(plots.plot_training, curves)


def _numbers(points: list[tuple[int, dict[str, Any]]], name: str) -> npt.NDArray[np.float64]:
    return np.array([values[name] for _, values in points], dtype=np.float64)


_LOADERS: dict[str, Callable[[Session, Clustering], Drawing]] = {
    "sizes": _sizes,
    "probabilities": _probabilities,
    "confusion": _confusion,
    "curves": _curves,
}
