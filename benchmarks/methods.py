"""TEMI in the interface of the rivals, with the default settings or with some of them changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.rivals import RIVALS, Fitted, Rival
from benchmarks.rivals.base import Features, one_core
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import Trainer

Neighbors = npt.NDArray[np.int64]


class Temi:
    def __init__(
        self,
        name: str = "TEMI",
        disturb: Callable[[Neighbors, int], Neighbors] | None = None,
        **settings: Any,
    ) -> None:
        """``disturb`` changes the mined neighbors, given the seed."""
        self.name = name
        self._disturb = disturb
        self._settings = settings

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        config = TrainConfig(n_clusters=n_clusters, seed=seed, **self._settings)
        config = config.resolve(len(features))
        assert config.n_neighbors is not None
        neighbors = mine_neighbors(features, config.n_neighbors).ids
        if self._disturb is not None:
            neighbors = self._disturb(neighbors, seed)
        trainer = Trainer(features, neighbors, config, device="cpu")
        trainer.run(trainer.total_steps)
        model = trainer.finish()
        return Fitted(labels=model.predict(features), predict=model.predict)


def replace_neighbors(neighbors: Neighbors, seed: int) -> Neighbors:
    """Replace a fifth of the neighbors by random images."""
    generator = np.random.default_rng(seed)
    wrong = generator.random(neighbors.shape) < 0.2
    return np.where(wrong, generator.integers(0, len(neighbors), neighbors.shape), neighbors)


TEMI = Temi()
ONE_HEAD = Temi("TEMI, one head", select="lowest_loss")
# The default training with another loss.
OBJECTIVES = (
    *(Temi(name.upper(), objective=name) for name in ("pmi", "wpmi")),
    Temi("TEMI with SCAN's loss", objective="scan"),
)
METHODS: dict[str, Rival] = {
    method.name: method for method in (TEMI, ONE_HEAD, *RIVALS, *OBJECTIVES)
}
NOISY = Temi(disturb=replace_neighbors)
