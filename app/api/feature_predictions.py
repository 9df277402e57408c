"""Predictions that need the features of the images: for neighbors, or to keep refused ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.inference import PredictContext, PredictInputs
from app.core.clusterings.training_images import nearest_training_images
from app.core.datasets.neighbors import Neighbor
from app.core.platform.errors import ImageRejected, InvalidRequest
from app.core.serving.abstention import is_novel
from app.core.serving.keeping import RefusedUpload
from app.core.serving.messages import Embedded, Features, Outcome, Predicted


@dataclass(frozen=True)
class NamedInputs:
    names: Sequence[str]  # one per input, for the response
    inputs: PredictInputs
    uploaded: bool = False  # files of the request, not images of a dataset


@dataclass(frozen=True, kw_only=True)
class FeaturePredictions:
    outcomes: Sequence[Outcome]
    neighbors: Sequence[Sequence[Neighbor] | None] = ()


def needs_features(
    context: PredictContext, options: schemas.PredictOptions, named: NamedInputs
) -> bool:
    return options.neighbors > 0 or _keeps(context, options, named)


def _keeps(context: PredictContext, options: schemas.PredictOptions, named: NamedInputs) -> bool:
    """Whether a refused image of the request is to be kept."""
    return (
        context.runtime.settings.keep_refused > 0
        and options.keep
        and options.false_alarm_rate is not None
        and named.uploaded
        and context.model.clustering_id is not None
    )


async def predict_with_features(
    context: PredictContext, options: schemas.PredictOptions, named: NamedInputs
) -> FeaturePredictions:
    """The features of the images give the labels, the neighbors, and what is kept."""
    _check_neighbors(context, options, len(named.inputs))
    seconds = options.deadline_seconds
    embedded = await context.embed(named.inputs, seconds)
    rows = [row for row in embedded if not isinstance(row, ImageRejected)]
    if not rows:
        errors = [row for row in embedded if isinstance(row, ImageRejected)]
        return FeaturePredictions(outcomes=errors)
    features = np.stack(rows)
    predicted = iter(await context.predict(PredictInputs(features=features), seconds))
    outcomes = [row if isinstance(row, ImageRejected) else next(predicted) for row in embedded]
    if _keeps(context, options, named):
        _keep(context, options, named, embedded, outcomes)
    if not options.neighbors:
        return FeaturePredictions(outcomes=outcomes)
    neighbors = await _neighbors(context, options.neighbors, embedded, features)
    return FeaturePredictions(outcomes=outcomes, neighbors=neighbors)


def _check_neighbors(context: PredictContext, options: schemas.PredictOptions, count: int) -> None:
    limit = context.runtime.settings.max_predict_files
    if options.neighbors and count > limit:
        raise InvalidRequest.field(
            "neighbors", f"can be listed for at most {limit:,} inputs, not {count:,}"
        )


async def _neighbors(
    context: PredictContext, count: int, embedded: Sequence[Embedded], features: Features
) -> list[Sequence[Neighbor] | None]:
    runtime = context.runtime
    found = await run_in_threadpool(
        nearest_training_images,
        runtime.db,
        runtime.storage,
        context.model.clustering_id,
        features,
        count,
    )
    if found is None:
        return []
    near = iter(found)
    return [None if isinstance(row, ImageRejected) else next(near) for row in embedded]


def _keep(
    context: PredictContext,
    options: schemas.PredictOptions,
    named: NamedInputs,
    embedded: Sequence[Embedded],
    outcomes: Sequence[Outcome],
) -> None:
    inputs = zip(named.names, named.inputs.images, embedded, outcomes, strict=True)
    refused = [
        RefusedUpload(name=name, data=image, features=row, outcome=outcome)
        for name, image, row, outcome in inputs
        if isinstance(image, bytes)
        and isinstance(row, np.ndarray)
        and isinstance(outcome, Predicted)
        and is_novel(outcome.novelty, options.false_alarm_rate)
    ]
    if refused:
        context.request.app.state.keeper.add(context.model, context.actor, refused)
