"""Calibrations of versions: from the training, then fitted to what people said in reviews.

A version never changes: its manifest keeps the calibration of the training. Each fit is a new row,
and predictions use the newest.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.core.platform.errors import TooFewReviews
from app.core.platform.tables import (
    Assignment,
    Clustering,
    Model,
    ModelCalibration,
    ModelVersion,
    Review,
)
from temi.analysis.reliability import Reliability, measure_reliability
from temi.calibration import IDENTITY, Calibration, fit_calibration

MIN_REVIEWS = 20
_MAX_REVIEWS = 20_000  # the newest
# Reviews chosen for their gain are harder than others of the same probability: a random sample of
# this size is used alone.
_ENOUGH_SAMPLED = 100
_PRIOR_WEIGHTS = (1.0, 1.0)  # of the slope and the intercept of the training
_FOLDS = 5


class Reviewed(NamedTuple):
    """What people said about the labels of a version: arrays of (n,)."""

    probability: npt.NDArray[np.float64]  # of the model, before any calibration
    right: npt.NDArray[np.float64]  # 1 if the image belongs to the cluster


def as_dict(calibration: Calibration) -> dict[str, float]:
    """For a manifest and the metrics of a clustering."""
    return {"slope": calibration.slope, "intercept": calibration.intercept}


def stored_calibration(values: Mapping[str, Any]) -> Calibration:
    """Of a manifest, or of the metrics of a clustering; both may be older than calibrations."""
    found = values.get("calibration")
    if found is None:
        return IDENTITY
    return Calibration(slope=found["slope"], intercept=found["intercept"])


def select_calibrations(version: ModelVersion) -> Select[ModelCalibration]:
    return select(ModelCalibration).where(
        ModelCalibration.model_id == version.model_id, ModelCalibration.version == version.version
    )


def newest_calibration(session: Session, version: ModelVersion) -> ModelCalibration | None:
    """The newest fit to reviews."""
    query = select_calibrations(version).order_by(ModelCalibration.number.desc()).limit(1)
    return session.scalar(query)


def current_calibration(session: Session, version: ModelVersion) -> Calibration:
    row = newest_calibration(session, version)
    if row is None:
        return stored_calibration(version.manifest)
    return Calibration(slope=row.slope, intercept=row.intercept)


def read_reviews(session: Session, model: Model, version: ModelVersion) -> Reviewed:
    """The newest reviews of clusterings by the version."""
    rows = session.execute(
        select(
            Assignment.probability,
            Review.belongs_to == Review.cluster_id,
            Review.stratum.is_not(None),
            Review.clustering_id,
        )
        .join(Clustering, Clustering.id == Review.clustering_id)
        .join(
            Assignment,
            (Assignment.clustering_id == Review.clustering_id)
            & (Assignment.image_id == Review.image_id),
        )
        .where(
            Clustering.tenant == model.tenant,
            Clustering.model_name == model.name,
            Clustering.model_version == version.version,
        )
        .order_by(Review.reviewed_at.desc(), Review.image_id)
        .limit(_MAX_REVIEWS)
    ).all()
    sampled = [row for row in rows if row[2]]
    used = sampled if len(sampled) >= _ENOUGH_SAMPLED else rows
    maps = _maps(session, {row[3] for row in used})
    raw = [float(maps[clustering].invert(sure)) for sure, _, _, clustering in used]
    return Reviewed(
        np.array(raw, dtype=np.float64), np.array([bool(row[1]) for row in used], dtype=np.float64)
    )


def _maps(session: Session, clustering_ids: set[str]) -> dict[str, Calibration]:
    """How the probabilities of these clusterings were calibrated."""
    query = select(Clustering.id, Clustering.metrics).where(Clustering.id.in_(clustering_ids))
    return {key: stored_calibration(metrics) for key, metrics in session.execute(query)}


def reliability(
    session: Session, model: Model, version: ModelVersion, calibration: Calibration
) -> Reliability | None:
    """On the reviews of the version; None if there are none."""
    found = read_reviews(session, model, version)
    if len(found.right) == 0:
        return None
    return measure_reliability(calibration.apply(found.probability), found.right)


def add_calibration(
    session: Session, model: Model, version: ModelVersion, created_by: str | None
) -> ModelCalibration:
    """Fits a calibration to the reviews. The caller has locked the model."""
    found = read_reviews(session, model, version)
    if (count := len(found.right)) < MIN_REVIEWS:
        raise TooFewReviews(
            f"Version {version.version} of {model.name!r} has {count} reviewed images; a "
            f"calibration needs at least {MIN_REVIEWS}. Review more images of its clustering."
        )
    newest = newest_calibration(session, version)
    prior, before = stored_calibration(version.manifest), current_calibration(session, version)
    fitted = _fit(found, prior)
    row = ModelCalibration(
        model_id=version.model_id,
        version=version.version,
        number=1 if newest is None else newest.number + 1,
        slope=fitted.slope,
        intercept=fitted.intercept,
        reviews=count,
        error_before=measure_reliability(before.apply(found.probability), found.right).error,
        error_after=_held_out_error(found, prior),
        created_by=created_by,
    )
    session.add(row)
    session.flush()
    return row


def _fit(found: Reviewed, prior: Calibration) -> Calibration:
    return fit_calibration(
        found.probability, found.right, prior=prior, prior_weights=_PRIOR_WEIGHTS
    )


def _held_out_error(found: Reviewed, prior: Calibration) -> float:
    """Each review is judged by a map fitted to the others, so that the error is not flattered."""
    folds = np.arange(len(found.right)) % _FOLDS
    calibrated = np.empty_like(found.probability)
    for fold in range(_FOLDS):
        held, kept = folds == fold, folds != fold
        part = Reviewed(found.probability[kept], found.right[kept])
        calibrated[held] = _fit(part, prior).apply(found.probability[held])
    return measure_reliability(calibrated, found.right).error
