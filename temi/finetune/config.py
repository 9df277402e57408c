"""Settings of a fine-tuning run; settings shared with training have the same names and limits."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from temi.config import TrainConfig
from temi.errors import InvalidConfig

_FROM_TRAINING = (
    "objective",
    "n_neighbors",
    "beta",
    "scan_entropy_weight",
    "occupancy_momentum",
    "seed",
)


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig:
    """Settings of fine-tuning; ``resolve`` chooses the fields that are None."""

    objective: str = "temi"
    n_neighbors: int | None = None  # None: the default of training
    beta: float = 0.6
    scan_entropy_weight: float = 4.0  # for scan only
    # Not higher for small batches: clusters merge if the occupancy lags behind the heads.
    occupancy_momentum: float = 0.9
    teacher_momentum: float | None = None  # None: 0.996, faster in runs under 5,000 steps
    # Per step, for any batch size. Far below the rate of a training from scratch: the features
    # that defined the neighbors should be refined, not replaced.
    backbone_learning_rate: float = 1e-5
    head_learning_rate: float = 1e-4  # the heads are already trained and follow the features
    weight_decay: float = 1e-4  # on weights only
    batch_size: int = 32  # pairs per step; each is two images, forward and backward
    pairs_at_once: int = 8  # of a batch in memory with activations; affects only rounding
    steps: int | None = None  # None: from `epochs`
    epochs: int | None = None  # alternative to `steps`; None: 5
    warmup_steps: int | None = None  # None: a tenth of the run, at most 100 steps
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch_size", "pairs_at_once"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidConfig(name, f"must be a whole number of at least 1, not {value!r}")
        self.as_training(n_clusters=2)  # validates the shared settings
        for name in ("backbone_learning_rate", "head_learning_rate"):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or value < 0:
                raise InvalidConfig(name, f"must be a number of at least 0, not {value!r}")

    @classmethod
    def of(cls, trained_with: TrainConfig, **overrides: Any) -> "FinetuneConfig":
        """Take objective, pairs and seed from the training of the heads."""
        chosen = {name: getattr(trained_with, name) for name in _FROM_TRAINING}
        taken = {name: value for name, value in chosen.items() if value is not None}
        if trained_with.smoothing:  # its pairs are neighbors by smoothed rows, which are purer
            taken.pop("n_neighbors", None)
        return cls(**(taken | overrides))

    def as_training(self, *, n_clusters: int) -> TrainConfig:
        """Return the settings shared with training as a ``TrainConfig``."""
        of_training = {field.name for field in fields(TrainConfig)}
        shared = [field.name for field in fields(self) if field.name in of_training]
        settings = {name: getattr(self, name) for name in shared}
        return TrainConfig(n_clusters=n_clusters, smoothing=False, **settings)

    def resolve(self, n_images: int, n_clusters: int) -> "FinetuneConfig":
        """Return a copy in which the fields that are None are chosen for the size of the set."""
        chosen = self
        if self.steps is None and self.epochs is None:
            chosen = replace(self, epochs=5)
        training = chosen.as_training(n_clusters=n_clusters).resolve(n_images)
        return replace(
            chosen,
            n_neighbors=training.n_neighbors,
            steps=training.steps,
            epochs=None,
            warmup_steps=training.warmup_steps,
            teacher_momentum=training.teacher_momentum,
        )
