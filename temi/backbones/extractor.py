"""What every loaded backbone offers, whichever library computes its features; no torch here."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from temi.backbones.preprocessing import Pixels, Preprocessing
from temi.config import Precision
from temi.naming.classifier import Classifier

Features = npt.NDArray[np.float32]


class Backend(Protocol):
    """Pixels (B, S, S, 3) to features (B, D); thread-safe."""

    name: str

    def embed(self, pixels: Pixels, threads: int = 1) -> Features:
        """Compute with up to ``threads`` cores; the features do not depend on their number."""


class FeatureExtractor(Protocol):
    """A frozen feature extractor with the preprocessing it was trained with."""

    @property
    def name(self) -> str: ...

    @property
    def weights_hash(self) -> str: ...

    @property
    def precision(self) -> Precision: ...

    @property
    def preprocessing(self) -> Preprocessing: ...

    @property
    def dim(self) -> int:
        """Features per image."""

    @property
    def device_type(self) -> str:
        """``cpu``, or the name of another kind of device."""

    @property
    def backend(self) -> Backend: ...

    @property
    def bytes(self) -> int:
        """The memory that it takes."""

    def embed(self, pixels: Pixels, threads: int = 1) -> Features:
        """Map pixels (B, S, S, 3) to features (B, D)."""

    def load_classifier(self) -> Classifier | None:
        """Return the classifier that the weights were trained with, if it is known."""
