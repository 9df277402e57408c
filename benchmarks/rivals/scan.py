"""The clustering step of SCAN, by the project's own trainer."""

from dataclasses import dataclass

from benchmarks.rivals.base import Features, Fitted, check, one_core
from benchmarks.rivals.pair_heads import N_HEADS, STEPS
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class Scan:
    """SCAN (Van Gansbeke, Vandenhende, Georgoulis, Proesmans and Van Gool, ECCV 2020).

    An image and its mined neighbors shall get the same confident cluster, and an entropy term
    keeps all clusters in use. This is the second of SCAN's three steps: the features are given,
    and the third step, which fine-tunes the network on its confident images, needs the network. As
    in the TEMI paper, the second view comes from a teacher that averages the student; the head
    with the lowest loss is kept.
    """

    name = "SCAN"
    steps: int = STEPS

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        check(features, n_clusters)
        config = TrainConfig(
            n_clusters=n_clusters,
            objective="scan",
            select="lowest_loss",
            smoothing=False,  # pairs of neighbors by plain features
            n_heads=N_HEADS,
            hidden_dim=128,  # small heads are as accurate as those of 512/256 and much faster
            bottleneck_dim=64,
            steps=self.steps,
            seed=seed,
        ).resolve(len(features))
        assert config.n_neighbors is not None
        neighbors = mine_neighbors(features, config.n_neighbors, seed=seed).ids
        trainer = Trainer(features, neighbors, config, device="cpu")
        trainer.run(trainer.total_steps)
        model = trainer.finish()
        return Fitted(labels=model.predict(features), predict=model.predict)
