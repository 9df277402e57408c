"""Features to search, and a slow brute-force search to compare with."""

import numpy as np
import numpy.typing as npt

Features = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


def random_features(n: int, dim: int = 8, seed: int = 0) -> Features:
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def clustered_features(n: int, dim: int = 32, groups: int = 20, seed: int = 0) -> Features:
    """Overlapping groups: many rows have neighbors in other groups."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(groups, 6))
    latent = centers[rng.integers(groups, size=n)] + 0.5 * rng.normal(size=(n, 6))
    features = latent @ rng.normal(size=(6, dim)) + 0.05 * rng.normal(size=(n, dim))
    return features.astype(np.float32)


def cosine(features: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    unit = features.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    scores: npt.NDArray[np.float64] = unit @ unit.T
    np.fill_diagonal(scores, -np.inf)
    return scores


def recall(features: Features, found: Ids) -> float:
    scores = cosine(features)
    truth = np.argpartition(-scores, found.shape[1], axis=1)[:, : found.shape[1]]
    hits = [len(np.intersect1d(a, b)) for a, b in zip(truth, found, strict=True)]
    return float(np.mean(hits) / found.shape[1])


def assert_lists(found: Ids, k: int) -> None:
    """Check that every row has k different other rows."""
    assert found.shape[1] == k
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert found.max() < len(found)
    assert (found != np.arange(len(found))[:, None]).all()
    assert all(len(set(row)) == k for row in found.tolist())


def assert_nearest(features: Features, found: Ids) -> None:
    """Compare by similarity, because tied rows may come in any order."""
    assert_lists(found, found.shape[1])
    scores = cosine(features)
    best = -np.sort(-scores, axis=1)[:, : found.shape[1]]
    np.testing.assert_allclose(np.take_along_axis(scores, found, axis=1), best, atol=1e-5)
