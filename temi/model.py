"""A trained clustering model: one teacher head with the standardization of its features.

Does not load torch: a process that only predicts needs numpy and ONNX Runtime.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import erf, softmax

from temi.errors import TemiError
from temi.standardize import chunks

_NAMES = ("mean", "std", "w1", "b1", "w2", "b2", "w3")
_SMALLEST_NORM = 1e-12

Doubles = npt.NDArray[np.float64]


class ClusterModel:
    """Maps the raw features of a backbone to cluster probabilities.

    Computes in float64, so that rounding does not change labels: an image gets the same label
    alone or in a batch, on one core or on many.
    """

    def __init__(self, tensors: Mapping[str, npt.NDArray[np.float32]], temperature: float) -> None:
        _check(tensors)
        self._tensors = {
            name: np.ascontiguousarray(tensors[name], dtype=np.float32) for name in _NAMES
        }
        self.temperature = temperature
        self._float64 = {name: array.astype(np.float64) for name, array in self._tensors.items()}

    @property
    def dim(self) -> int:
        return int(self._tensors["mean"].shape[0])

    @property
    def n_clusters(self) -> int:
        return int(self._tensors["w3"].shape[1])

    def predict_proba(self, features: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """Return the softmax of the head at the training temperature: (N, C)."""
        if features.ndim != 2 or features.shape[1] != self.dim:
            raise TemiError(f"features must have shape (N, {self.dim}), not {features.shape}")
        probs = np.empty((features.shape[0], self.n_clusters), dtype=np.float32)
        for rows in chunks(features.shape[0]):
            logits = self._logits(np.asarray(features[rows], dtype=np.float64))
            probs[rows] = softmax(logits / self.temperature, axis=1)
        return probs

    def predict(self, features: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
        """Return the most probable cluster of each row: (N,)."""
        return np.asarray(self.predict_proba(features).argmax(axis=1), dtype=np.int64)

    def tensors(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return everything but the temperature, to store as safetensors."""
        return dict(self._tensors)

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, npt.NDArray[np.float32]], temperature: float
    ) -> "ClusterModel":
        return cls(tensors, temperature)

    def _logits(self, features: Doubles) -> Doubles:
        t = self._float64
        standardized = (features - t["mean"]) / t["std"]  # (N, D)
        hidden = _gelu(standardized @ t["w1"] + t["b1"])  # (N, hidden)
        bottleneck = _normalize(hidden @ t["w2"] + t["b2"])  # (N, bottleneck)
        return np.asarray(bottleneck @ t["w3"])  # (N, C)


def _gelu(x: Doubles) -> Doubles:
    """Return x times the normal distribution function of x."""
    phi: Doubles = erf(x * np.sqrt(0.5))
    phi += 1.0
    phi *= 0.5
    phi *= x
    return phi


def _normalize(rows: Doubles) -> Doubles:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, _SMALLEST_NORM))


def _check(tensors: Mapping[str, npt.NDArray[np.float32]]) -> None:
    missing = [name for name in _NAMES if name not in tensors]
    if missing:
        raise TemiError(f"not a cluster model: {', '.join(missing)} missing")
    shapes = {name: tuple(tensors[name].shape) for name in _NAMES}
    ranks = {name: len(shape) for name, shape in shapes.items()}
    if ranks != {"mean": 1, "std": 1, "w1": 2, "b1": 1, "w2": 2, "b2": 1, "w3": 2}:
        raise TemiError(f"not a cluster model: unexpected shapes {shapes}")
    (dim,), (hidden,), (bottleneck,) = shapes["mean"], shapes["b1"], shapes["b2"]
    expected = {"std": (dim,), "w1": (dim, hidden), "w2": (hidden, bottleneck)}
    fits = all(shapes[name] == shape for name, shape in expected.items())
    if not fits or shapes["w3"][0] != bottleneck:
        raise TemiError(f"not a cluster model: shapes {shapes} do not fit together")
