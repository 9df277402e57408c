"""TEMI as a scikit-learn estimator."""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError, safe_open
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from temi.analysis.cluster_count import CountEstimate, estimate_cluster_count
from temi.analysis.metrics import evaluate
from temi.config import AUTO_CLUSTERS, TrainConfig
from temi.errors import TemiError
from temi.model import ClusterModel
from temi.neighbors.search import mine_neighbors
from temi.training.constraints import Constraints
from temi.training.trainer import Trainer, TrainReport

_FORMAT = "temi-estimator-1"
_STEPS_PER_REPORT = 10

Features = npt.NDArray[np.floating]


class TEMI(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters features of a frozen backbone; the recipe chooses settings that are None.

    ``recipe="paper"`` trains as the paper does, at its full cost. ``progress`` is called with a
    ``TrainReport`` every few steps. Features may be a memory map larger than memory.

    ``n_clusters="auto"`` finds the number. Attributes after ``fit``: ``labels_``, ``model_``,
    ``neighbors_``, ``report_``, ``n_features_in_``, and ``count_``, the figures of every number
    that was compared, or None.
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 10,
        *,
        recipe: Literal["default", "paper"] = "default",
        objective: str | None = None,
        select: str | None = None,
        n_heads: int | None = None,
        n_neighbors: int | None = None,
        beta: float | None = None,
        steps: int | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        precision: str | None = None,
        seed: int = 0,
        device: str = "auto",
        progress: Callable[[TrainReport], None] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.recipe = recipe
        self.objective = objective
        self.select = select
        self.n_heads = n_heads
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.steps = steps
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.precision = precision
        self.seed = seed
        self.device = device
        self.progress = progress

    def fit(
        self,
        features: Features,
        y: object = None,  # noqa: ARG002  scikit-learn's signature; all labels, for `score` only
        *,
        neighbors: npt.NDArray[np.integer] | None = None,
        labels: npt.ArrayLike | None = None,
    ) -> "TEMI":
        """Mine the neighbors, unless ``neighbors`` (N, k) is given, and train.

        ``labels`` (N,) are the clusters of some images, from 0, and -1 for the others, which learn
        from them. Images with a label keep it in ``labels_``.
        """
        features = _as_features(features)
        constraints = None if labels is None else Constraints.of_labels(labels)
        self.count_ = self._count(features)
        found = None if self.count_ is None else self.count_.best
        config = self._config(found).resolve(len(features))
        assert config.n_neighbors is not None
        if neighbors is None:
            neighbors = mine_neighbors(features, config.n_neighbors).ids
        trainer = Trainer(features, neighbors, config, constraints=constraints, device=self.device)
        self.report_ = self._train(trainer)
        self.model_ = trainer.finish()
        self.neighbors_ = neighbors
        self.n_features_in_ = features.shape[1]
        self.labels_ = self.model_.predict(features)
        if constraints is not None:
            self.labels_ = np.where(constraints.labels < 0, self.labels_, constraints.labels)
        return self

    def predict(self, features: Features) -> npt.NDArray[np.int64]:
        """Return the most probable cluster of each row: (N,)."""
        return self._fitted().predict(_as_features(features))

    def predict_proba(self, features: Features) -> npt.NDArray[np.float32]:
        """Return the probability of every cluster: (N, C)."""
        return self._fitted().predict_proba(_as_features(features))

    def score(self, features: Features, y: Sequence[object | None]) -> float:
        """Return the accuracy under the best matching of clusters to the labels ``y``."""
        accuracy = evaluate(list(y), self.predict(features)).accuracy
        if accuracy is None:
            raise TemiError("cannot compute a score: no image has a label")
        return accuracy

    def save(self, path: str | PathLike[str]) -> None:
        """Write model and settings to one safetensors file; replaces an existing one atomically."""
        target = Path(path)
        metadata = {
            "format": _FORMAT,
            "temperature": repr(self._fitted().temperature),
            "settings": json.dumps({k: v for k, v in self.get_params().items() if k != "progress"}),
        }
        partial = target.with_name(f".{target.name}.partial")
        partial.write_bytes(safetensors.numpy.save(self.model_.tensors(), metadata=metadata))
        partial.replace(target)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "TEMI":
        """Load a file of ``save``, ready to predict. No code in the file is executed."""
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise TemiError(f"{path} is not a file of TEMI.save: {error}") from error
        if metadata.get("format") != _FORMAT:
            raise TemiError(f"{path} is not a file of TEMI.save")
        loaded = cls(**json.loads(metadata["settings"]))
        loaded.model_ = ClusterModel.from_tensors(tensors, float(metadata["temperature"]))
        loaded.n_features_in_ = loaded.model_.dim
        return loaded

    def _count(self, features: Features) -> CountEstimate | None:
        if self.n_clusters != AUTO_CLUSTERS:
            return None
        return estimate_cluster_count(features, seed=self.seed)

    def _config(self, found: int | None = None) -> TrainConfig:
        """The settings, with the number of clusters that was found."""
        settings = {field.name for field in fields(TrainConfig)}
        given = {name: value for name, value in self.get_params().items() if name in settings}
        if found is not None:
            given["n_clusters"] = found
        return TrainConfig.for_recipe(self.recipe, **given)

    def _train(self, trainer: Trainer) -> TrainReport:
        report = trainer.report()
        while not report.done:
            report = trainer.run(_STEPS_PER_REPORT)
            if self.progress is not None:
                self.progress(report)
        if not report.settled:
            warnings.warn(
                f"training ended after {report.step} steps, but the assignments still changed; "
                "more steps may give better clusters",
                ConvergenceWarning,
                stacklevel=3,
            )
        return report

    def _fitted(self) -> ClusterModel:
        if not hasattr(self, "model_"):
            raise NotFittedError("call fit first")
        model: ClusterModel = self.model_
        return model


def _as_features(features: Features) -> Features:
    """Convert to an array of shape (N, D); a memory map stays a memory map."""
    array = np.asanyarray(features)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiu":
        raise TemiError(
            f"features must be numbers of shape (N, D), not {array.dtype} {array.shape}"
        )
    return array
