"""Tasks of Label Studio: the labeling configuration, the images, and predictions as choices."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np

from app.core.exports.classes import Classes
from app.core.platform.errors import ImageRejected, InvalidRequest
from app.core.serving.messages import Outcome
from app.core.serving.resolver import ResolvedModel

_DECLARATION = re.compile("<!(DOCTYPE|ENTITY)", re.IGNORECASE)  # may expand without bounds


@dataclass(frozen=True)
class LabelingConfig:
    """The choices of a project about an image."""

    control: str  # name of the Choices tag
    object: str  # name of the Image tag
    field: str  # of a task's data, with the image
    choices: frozenset[str] | None  # None if each task has its own


def parse_config(text: str) -> LabelingConfig:
    """Returns the first Choices tag that belongs to an Image tag."""
    root = _parse_xml(text)
    fields = {
        tag.get("name"): tag.get("value", "").removeprefix("$")
        for tag in root.iter("Image")
        if tag.get("value", "").startswith("$")
    }
    for tag in root.iter("Choices"):
        control, object_ = tag.get("name"), tag.get("toName")
        if control and object_ and object_ in fields:
            values = frozenset(choice.get("value", "") for choice in tag.iter("Choice"))
            return LabelingConfig(control, object_, fields[object_], values or None)
    raise InvalidRequest.field(
        "label_config", "needs an Image tag with a value such as $image, and Choices for it"
    )


def _parse_xml(text: str) -> ElementTree.Element:
    if _DECLARATION.search(text):
        raise InvalidRequest.field("label_config", "must not declare a DOCTYPE or entities")
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - it declares no entities
    except (ElementTree.ParseError, ValueError) as error:
        raise InvalidRequest.field("label_config", f"is not XML: {str(error)[:200]}") from error


def references_of(
    config: LabelingConfig, tasks: Iterable[Mapping[str, Any]]
) -> list[str | ImageRejected]:
    """The URL of each task's image."""
    return [_reference(config.field, task) for task in tasks]


def _reference(field: str, task: Mapping[str, Any]) -> str | ImageRejected:
    value = task.get(field)
    return value if isinstance(value, str) else NoImage(f"The task has no text in {field!r}.")


class NoImage(ImageRejected):
    code = "no_image"


def model_version(model: ResolvedModel) -> str:
    return f"{model.name}/versions/{model.version}"


def to_predictions(
    config: LabelingConfig, model: ResolvedModel, outcomes: Iterable[Outcome]
) -> list[dict[str, Any]]:
    """Predictions of Label Studio; without a result if there is no choice for the cluster."""
    classes = Classes.of(dict(enumerate(model.clusters.names)))  # as in an export
    return [_prediction(config, model, classes, outcome) for outcome in outcomes]


def _prediction(
    config: LabelingConfig, model: ResolvedModel, classes: Classes, outcome: Outcome
) -> dict[str, Any]:
    prediction: dict[str, Any] = {"model_version": model_version(model), "score": 0.0, "result": []}
    if isinstance(outcome, ImageRejected):
        return prediction | {"error": {"code": outcome.code, "detail": outcome.detail}}
    merged = model.clusters.merge(outcome.probabilities)
    output = int(np.argmax(merged))
    score = round(float(model.calibration.apply(merged[output])), 6)
    label = classes.name_of(output)
    if config.choices is not None and label not in config.choices:
        detail = f"The configuration has no choice {label!r}."
        return prediction | {"error": {"code": "no_choice", "detail": detail}}
    choice = {
        "from_name": config.control,
        "to_name": config.object,
        "type": "choices",
        "value": {"choices": [label]},
        "score": score,
    }
    return prediction | {"score": score, "result": [choice]}
