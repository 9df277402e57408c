"""What the API and the process that computes say to each other."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from app.core.models.files import ModelFiles
from app.core.platform.errors import ImageRejected, ServiceError

Probabilities = npt.NDArray[np.float32]
Outcome = Probabilities | ImageRejected
"""Probabilities of the clusters (C,), or why this image has none."""


@dataclass(frozen=True, kw_only=True)
class LoadModel:
    """Have this model ready."""

    model: ModelFiles


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """Labels for images, or for features that somebody else computed."""

    id: int
    model: ModelFiles
    deadline: float  # by the monotonic clock, which all processes of a machine share
    images: tuple[bytes, ...] = ()
    features: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """How a piece of work went, for those who watch."""

    size: int
    wait_seconds: float
    compute_seconds: float


@dataclass(frozen=True, kw_only=True)
class PredictResult:
    id: int
    outcomes: list[Outcome]
    batches: list[Batch] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PredictFailure:
    id: int
    error: ServiceError


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The model answers from now on."""

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


ToProcess = LoadModel | PredictRequest
FromProcess = PredictResult | PredictFailure | Loaded | LoadFailed | Unloaded
