"""Settings of a training run, and their defaults for the size of the set."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import NoneType
from typing import Any, Literal, get_args

from temi.errors import InvalidConfig

# The assignments of all heads are compared in memory: with more clusters, one head is the model.
MAX_CONSENSUS_CLUSTERS = 1000
MAX_AUTO_CLUSTERS = 200  # that are considered if the number is to be found
_MAX_SMOOTHED = 4_000_000  # images whose smoothed rows are held in memory
_MANY_IMAGES = 100_000  # from here on fewer neighbors are mined, to save memory and time
# Images of an average cluster: if it is smaller, the graph's 10 neighbors leave the cluster.
_SMALL_CLUSTER = 20
_BETA = 0.6
_BETA_OF_SMALL_CLUSTERS = 0.85  # chosen on fruit and signs (docs/quality.md)
_TEAM = 8  # heads

ObjectiveName = Literal["temi", "wpmi", "pmi", "scan"]  # all but the first for comparison
Selection = Literal["consensus", "lowest_loss"]
Precision = Literal["float32", "bfloat16"]
AUTO_CLUSTERS = "auto"  # as the number of clusters: find it (`temi/analysis/cluster_count.py`)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a training run; ``resolve`` chooses the fields that are None."""

    n_clusters: int
    objective: ObjectiveName = "temi"
    n_heads: int = 16  # within a point of the paper's 50 at a third of the cost
    # Heads of a team share the weights of their pairs. None: a team of 8 heads, so that solutions
    # differ and the best are joined; one team for the head with the lowest loss.
    n_teams: int | None = None
    # None: 200, fewer if the expected clusters are small or the set is large.
    n_neighbors: int | None = None
    # Mine pairs by rows smoothed over the graph of neighbors. None: unless clusters are small, or
    # the set or the number of clusters is very large.
    smoothing: bool | None = None
    # The model: all heads joined, or the one with the lowest loss, as in the paper. None: joined,
    # unless there are very many clusters.
    select: Selection | None = None
    # None: 0.6, the paper's value for balanced use of all clusters; 0.85 if clusters are small, as
    # sets of so few images per cluster are hardly ever balanced.
    beta: float | None = None
    scan_entropy_weight: float = 4.0  # for scan only; from the paper's grid search
    temperature: float = 0.1  # the same for student and teacher
    # None: 128 and 64, as accurate as the paper's 512 and 256 at a tenth of the time; these for
    # more than 1,000 clusters.
    hidden_dim: int | None = None
    bottleneck_dim: int | None = None
    occupancy_momentum: float = 0.9
    teacher_momentum: float | None = None  # None: 0.996, faster in runs under 5,000 steps
    batch_size: int | None = None  # pairs per step; None: 256, fewer for small sets
    steps: int | None = None  # None: from the size of the set
    epochs: int | None = None  # alternative to `steps`; set at most one of the two
    # Per 256 pairs, scaled linearly with the batch. The paper uses 1e-4 and 20 times the steps.
    learning_rate: float = 4e-3
    warmup_steps: int | None = None  # None: a tenth of the run, at most 100 steps
    cooldown: float = 0.5  # last share of the run, in which the learning rate falls to zero
    weight_decay: float = 1e-4  # on weights only
    # Train in this many principal directions, as accurate as in 256; None: in all.
    projection_dim: int | None = 128
    early_stop: bool = True  # stop once assignments have settled
    # Of the matrix products. bfloat16 is faster on hardware that supports it, but less precise.
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        _validate(self)

    @classmethod
    def paper(cls, *, n_clusters: int, **overrides: Any) -> "TrainConfig":
        """The paper's recipe for CIFAR-sized sets, unchanged and at its full cost."""
        recipe: dict[str, Any] = {
            "n_heads": 50,
            "n_teams": 1,
            "n_neighbors": 50,
            "smoothing": False,
            "select": "lowest_loss",
            "beta": _BETA,
            "hidden_dim": 512,
            "bottleneck_dim": 256,
            "batch_size": 512,
            "epochs": 200,
            "learning_rate": 1e-4,
            "teacher_momentum": 0.996,
            "cooldown": 0.0,
            "projection_dim": None,
            "early_stop": False,
        }
        if "steps" in overrides:
            del recipe["epochs"]
        return cls(n_clusters=n_clusters, **(recipe | overrides))

    @classmethod
    def for_recipe(cls, recipe: str, **settings: Any) -> "TrainConfig":
        """Use the recipe ``default`` or ``paper``; settings that are not None override it."""
        given = {name: value for name, value in settings.items() if value is not None}
        if recipe == "paper":
            return cls.paper(**given)
        if recipe != "default":
            raise InvalidConfig("recipe", f"must be default or paper, not {recipe!r}")
        return cls(**given)

    def resolve(self, n_images: int) -> "TrainConfig":
        """Return a copy in which the fields that are None are chosen for ``n_images``."""
        if self.n_clusters > n_images:
            raise InvalidConfig(
                "n_clusters",
                f"{self.n_clusters} clusters need at least as many images, "
                f"but there are {n_images}",
            )
        batch_size = self.batch_size or _default_batch(n_images)
        steps = self.steps or self._steps_from_epochs(n_images, batch_size)
        warmup = 100 if self.warmup_steps is None else self.warmup_steps
        few = self.n_clusters <= MAX_CONSENSUS_CLUSTERS
        select = self.select or ("consensus" if few else "lowest_loss")
        hidden, bottleneck = self.head_dims
        large = n_images >= _SMALL_CLUSTER * self.n_clusters
        smoothing = self.smoothing
        if smoothing is None:
            smoothing = few and large and n_images <= _MAX_SMOOTHED
        beta = _BETA if large or select != "consensus" else _BETA_OF_SMALL_CLUSTERS
        neighbors = self._default_neighbors(n_images, smoothing)
        return replace(
            self,
            n_teams=min(self.n_teams or self._default_teams(select), self.n_heads),
            smoothing=smoothing,
            select=select,
            beta=beta if self.beta is None else self.beta,
            hidden_dim=hidden,
            bottleneck_dim=bottleneck,
            n_neighbors=min(self.n_neighbors or neighbors, n_images - 1),
            batch_size=batch_size,
            steps=steps,
            epochs=None,
            warmup_steps=min(warmup, steps // 10),
            teacher_momentum=_default_momentum(steps)
            if self.teacher_momentum is None
            else self.teacher_momentum,
        )

    @property
    def head_dims(self) -> tuple[int, int]:
        """The sizes of the hidden layer and of the bottleneck."""
        hidden, bottleneck = (128, 64) if self.n_clusters <= MAX_CONSENSUS_CLUSTERS else (512, 256)
        return self.hidden_dim or hidden, self.bottleneck_dim or bottleneck

    def _default_teams(self, select: Selection) -> int:
        return max(1, self.n_heads // _TEAM) if select == "consensus" else 1

    def _default_neighbors(self, n_images: int, smoothing: bool) -> int:
        average = n_images // self.n_clusters  # size of a cluster
        fewest = min(5, max(1, average - 1))
        if smoothing:  # smoothed neighbors are purer
            return min(200 if n_images < _MANY_IMAGES else 100, max(fewest, average // 2))
        # A quarter of the average cluster size: with more, images at the edge of a cluster get
        # neighbors from other clusters, which costs several points of accuracy on small sets.
        return min(50, max(fewest, average // 4))

    def _steps_from_epochs(self, n_images: int, batch_size: int) -> int:
        if self.epochs is None:
            return _default_steps(n_images)
        return max(1, math.ceil(self.epochs * n_images / batch_size))

    def as_dict(self) -> dict[str, int | float | bool | str | None]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainConfig":
        known = {field.name for field in fields(cls)}
        for name in values:
            if name not in known:
                raise InvalidConfig(
                    name, f"is not a training setting; these are: {', '.join(sorted(known))}"
                )
        if "n_clusters" not in values:
            raise InvalidConfig("n_clusters", "is required")
        return cls(**values)


def _default_batch(n_images: int) -> int:
    return 256 if n_images >= 1024 else 128


def _default_steps(n_images: int) -> int:
    # 300 steps are enough for sets of hundreds and thousands; larger sets get two epochs.
    return max(300, 2 * n_images // 256)


def _default_momentum(steps: int) -> float:
    # The teacher averages over a twentieth of the run: with 0.996 it would lag behind the student
    # of a short run by a quarter of the run. From 5,000 steps on it is the paper's value.
    return min(0.996, max(0.9, 1.0 - 20 / steps))


_INTEGERS = {  # field -> smallest allowed value
    "n_clusters": 2,
    "n_heads": 1,
    "n_teams": 1,
    "n_neighbors": 1,
    "hidden_dim": 1,
    "bottleneck_dim": 1,
    "batch_size": 1,
    "steps": 1,
    "epochs": 1,
    "warmup_steps": 0,
    "projection_dim": 1,
    "seed": 0,
}
_CHOICES = {
    "objective": get_args(ObjectiveName),
    "precision": PRECISIONS,
}
_OPTIONAL = {field.name for field in fields(TrainConfig) if NoneType in get_args(field.type)}


def _validate(config: TrainConfig) -> None:
    for name, smallest in _INTEGERS.items():
        value = getattr(config, name)
        if value is None and name in _OPTIONAL:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < smallest:
            raise InvalidConfig(
                name, f"must be a whole number of at least {smallest}, not {value!r}"
            )
    if config.seed >= 2**63:
        raise InvalidConfig("seed", f"must be below 2**63, not {config.seed}")
    if not isinstance(config.early_stop, bool):
        raise InvalidConfig("early_stop", f"must be true or false, not {config.early_stop!r}")
    if config.smoothing not in (True, False, None):
        raise InvalidConfig("smoothing", f"must be true or false, not {config.smoothing!r}")
    if config.select not in (*get_args(Selection), None):
        allowed = ", ".join(get_args(Selection))
        raise InvalidConfig("select", f"must be one of {allowed}, not {config.select!r}")
    if config.select == "consensus" and config.n_clusters > MAX_CONSENSUS_CLUSTERS:
        raise InvalidConfig(
            "select",
            f"consensus is for at most {MAX_CONSENSUS_CLUSTERS} clusters, not {config.n_clusters}; "
            "use lowest_loss",
        )
    if config.steps is not None and config.epochs is not None:
        raise InvalidConfig("epochs", "give either steps or epochs, not both")
    for name, choices in _CHOICES.items():
        value = getattr(config, name)
        if value not in choices:
            raise InvalidConfig(name, f"must be one of {', '.join(choices)}, not {value!r}")
    _within(config, "scan_entropy_weight", lambda v: v >= 0.0, "at least 0")
    _within(config, "beta", lambda v: 0.5 < v <= 1.0, "above 0.5 and at most 1")
    _within(config, "temperature", lambda v: v > 0.0, "above 0")
    _within(config, "learning_rate", lambda v: v > 0.0, "above 0")
    _within(config, "cooldown", lambda v: 0.0 <= v <= 1.0, "from 0 to 1")
    _within(config, "weight_decay", lambda v: v >= 0.0, "at least 0")
    for name in ("occupancy_momentum", "teacher_momentum"):
        _within(config, name, lambda v: 0.0 <= v < 1.0, "at least 0 and below 1")


def _within(config: TrainConfig, name: str, allowed: Any, text: str) -> None:
    value = getattr(config, name)
    if value is None and name in _OPTIONAL:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not allowed(value):
        raise InvalidConfig(name, f"must be a number {text}, not {value!r}")
