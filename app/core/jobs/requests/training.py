"""Checks and settings that the requests for a training share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.jobs.requests.base import MAX_STEPS
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import Dataset, Image
from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.finetune.config import FinetuneConfig


def config_settings(
    request: BaseModel, config: type[TrainConfig | FinetuneConfig]
) -> dict[str, Any]:
    """Returns the fields of the request that are settings of `config`."""
    names = [field.name for field in fields(config)]
    return {name: getattr(request, name) for name in names if name in type(request).model_fields}


@contextmanager
def refusing_invalid_config() -> Iterator[None]:
    """Turns an `InvalidConfig` of the block into an `InvalidRequest` with the field's name."""
    try:
        yield
    except InvalidConfig as error:
        raise InvalidRequest.field(error.field, error.message) from error


def resolve_training(recipe: str, settings: Mapping[str, Any], n_images: int) -> dict[str, Any]:
    """Returns the settings with every open one chosen for this many images."""
    with refusing_invalid_config():
        return TrainConfig.for_recipe(recipe, **settings).resolve(n_images).as_dict()


def check_steps(steps: int | None, epochs: int | None) -> None:
    """Applies the limit of `steps` to `epochs`, which are many steps on a large dataset."""
    if epochs is not None and steps is not None and steps > MAX_STEPS:
        raise InvalidRequest.field(
            "epochs",
            f"{epochs} epochs of this dataset are {steps:,} steps; at most {MAX_STEPS:,} are "
            "allowed",
        )


def check_neighbor_count(n_neighbors: int | None, n_images: int) -> None:
    if n_neighbors is not None and n_neighbors >= n_images:
        raise InvalidRequest.field(
            "n_neighbors", f"must be below the number of images, {n_images}, not {n_neighbors}"
        )


def count_training_images(session: Session, dataset: Dataset, exclude_duplicates: str) -> int:
    """Near duplicates are counted: they are found only when the job runs."""
    if exclude_duplicates == "none":
        return dataset.image_count
    distinct = select(func.count(Image.sha256.distinct()))
    return session.scalar(distinct.where(Image.dataset_id == dataset.id)) or 0
