"""Plots of a model version. Data is loaded first; drawing needs no database."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from app.core.models import calibrations
from app.core.models.drift import read_drift
from app.core.platform.errors import NotFound
from app.core.platform.tables import Model, ModelVersion
from temi.analysis import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRIFT_DAYS = 30
Drawing = Callable[[], "Figure"]
Loader = Callable[[Session, Model, ModelVersion], tuple[Drawing, str]]


def load_plot(
    session: Session, model: Model, version: ModelVersion, name: str
) -> tuple[Drawing, str]:
    """Loads the data of a plot, and a text that changes with it; raises NotFound without any."""
    return _LOADERS[name](session, model, version)


def _reliability(session: Session, model: Model, version: ModelVersion) -> tuple[Drawing, str]:
    current = calibrations.current_calibration(session, version)
    found = calibrations.reliability(session, model, version, current)
    if found is None:
        raise NotFound(f"No image of a clustering by {model.name!r} {version.version} is reviewed.")
    return partial(plots.plot_reliability, found), _digest(found)


def _drift(session: Session, _model: Model, version: ModelVersion) -> tuple[Drawing, str]:
    found = read_drift(session, version, _DRIFT_DAYS)
    return partial(plots.plot_novelty_counts, found.novelty), _digest(found.novelty)


def _digest(data: object) -> str:
    return hashlib.sha256(repr(data).encode()).hexdigest()[:16]


_LOADERS: dict[str, Loader] = {"reliability": _reliability, "drift": _drift}
