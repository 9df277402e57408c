"""Settings of a fine-tuning run. What it shares with training has training's names and limits."""

import math
from dataclasses import dataclass, replace
from typing import Any

from temi.config import TrainConfig
from temi.errors import InvalidConfig

_SHARED = ("objective", "n_neighbors", "beta", "scan_entropy_weight", "occupancy_momentum", "seed")
_LIKE_TRAINING = (
    *_SHARED,
    "teacher_momentum",
    "batch_size",
    "steps",
    "epochs",
    "warmup_steps",
    "weight_decay",
)


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig:
    """How to fine-tune. Fields left at None are chosen for the set by ``resolve``."""

    objective: str = "temi"
    n_neighbors: int | None = None  # None: as many as training takes by itself
    beta: float = 0.6
    scan_entropy_weight: float = 4.0  # for scan only
    # Not slower for small batches: an occupancy that trails the heads lets clusters merge.
    occupancy_momentum: float = 0.9
    teacher_momentum: float | None = None  # None: 0.996, faster in runs under 5,000 steps
    # Per step, whatever the batch. Far below a rate to train with: the features that made the
    # neighbors are to be sharpened, not replaced.
    backbone_learning_rate: float = 1e-5
    head_learning_rate: float = 1e-4  # the heads are trained already: they follow the features
    weight_decay: float = 1e-4  # on weights only
    batch_size: int = 32  # pairs per step: each costs two images, forward and backward
    pairs_at_once: int = 8  # of a batch, in memory with all activations; changes only rounding
    steps: int | None = None  # None: from `epochs`
    epochs: int | None = None  # another way to say `steps`; None: 5
    warmup_steps: int | None = None  # None: a tenth of the run, at most 100 steps
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch_size", "pairs_at_once"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidConfig(name, "must be a whole number of at least 1")
        self.as_training(n_clusters=2)  # refuses what training refuses
        for name in ("backbone_learning_rate", "head_learning_rate"):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or value < 0:
                raise InvalidConfig(name, "must be a number of at least 0")

    @classmethod
    def of(cls, trained_with: TrainConfig, **overrides: Any) -> "FinetuneConfig":
        """The objective, pairs and seed that the heads were trained with."""
        shared = {name: getattr(trained_with, name) for name in _SHARED}
        return cls(**(shared | overrides))

    def as_training(self, *, n_clusters: int) -> TrainConfig:
        """The settings shared with training, in its form."""
        return TrainConfig(
            n_clusters=n_clusters, **{name: getattr(self, name) for name in _LIKE_TRAINING}
        )

    def resolve(self, n_images: int, n_clusters: int) -> "FinetuneConfig":
        """The same settings with every open field decided for this set, as training does it."""
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
