"""Messages between the API and the prediction process."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from app.core.models.files import ModelFiles
from app.core.platform.errors import ImageRejected, ServiceError

Probabilities = npt.NDArray[np.float32]
Outcome = Probabilities | ImageRejected
"""Probabilities of the clusters (C,), or why the image has none. Features (D,) if the request asks
for them."""


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
    outcomes: list[Outcome]
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
