"""Messages between the API and the prediction process."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.core.models.files import ModelFiles
from app.core.platform.errors import ImageRejected, ServiceError

Features = npt.NDArray[np.float32]


class Predicted(NamedTuple):
    probabilities: npt.NDArray[np.float32]  # (C,), of the clusters
    novelty: float | None  # None if the version is older than novelty


Outcome = Predicted | ImageRejected
"""What the model says about an image, or why it says nothing."""
Embedded = Features | ImageRejected
"""The features of an image (D,), or why it has none."""


@dataclass(frozen=True, kw_only=True)
class LoadModel:
    model: ModelFiles


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """Images, or features that the client has computed."""

    id: int
    model: ModelFiles
    deadline: float  # by the monotonic clock, which all processes of a machine share
    images: tuple[bytes, ...] = ()
    features: npt.NDArray[np.float32] | None = None
    embed_only: bool = False  # the outcomes are the features of the images


@dataclass(frozen=True, kw_only=True)
class EmbedTexts:
    """The outcomes are the vectors of the texts, in the space of the model's features."""

    id: int
    model: ModelFiles
    deadline: float
    texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BatchStats:
    size: int
    wait_seconds: float
    compute_seconds: float


@dataclass(frozen=True, kw_only=True)
class PredictResult:
    id: int
    outcomes: list[Outcome] | list[Embedded]
    batches: list[BatchStats] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PredictFailure:
    id: int
    error: ServiceError


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The model is ready for predictions."""

    model: ModelFiles
    bytes: int  # of all models that are loaded
    seconds: float
    backend: str  # what computes its features


@dataclass(frozen=True, kw_only=True)
class LoadFailed:
    model: ModelFiles
    error: ServiceError


@dataclass(frozen=True, kw_only=True)
class Unloaded:
    model: ModelFiles
    bytes: int
    reason: str  # idle or space


ToProcess = LoadModel | PredictRequest | EmbedTexts
FromProcess = PredictResult | PredictFailure | Loaded | LoadFailed | Unloaded
