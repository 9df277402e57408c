"""The consensus is better than the heads that it joins, and says how far they agree."""

import numpy as np
import numpy.typing as npt
import pytest

from temi.analysis.metrics import evaluate
from temi.training.consensus import find_consensus

N_CLUSTERS = 6
Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def _heads(truth: Labels, n_heads: int, wrong: float, seed: int = 0) -> Array:
    """Heads with numbers of their own for the clusters, each wrong for other images."""
    rng = np.random.default_rng(seed)
    heads = []
    for _ in range(n_heads):
        labels = rng.permutation(N_CLUSTERS)[truth]
        at_random = rng.random(len(truth)) < wrong
        labels = np.where(at_random, rng.integers(0, N_CLUSTERS, len(truth)), labels)
        heads.append(np.eye(N_CLUSTERS, dtype=np.float32)[labels])
    return np.stack(heads)


@pytest.fixture
def truth() -> Labels:
    return np.random.default_rng(1).integers(0, N_CLUSTERS, 400)


def _accuracy(truth: Labels, found: Labels) -> float:
    accuracy = evaluate(truth.tolist(), found).accuracy
    assert accuracy is not None
    return accuracy


def test_the_consensus_is_better_than_every_head(truth: Labels) -> None:
    heads = _heads(truth, 8, wrong=0.35)

    found = find_consensus(heads, seed=0).probabilities(heads)

    assert max(_accuracy(truth, head.argmax(axis=1)) for head in heads) < 0.8
    assert _accuracy(truth, found.argmax(axis=1)) > 0.97


def test_probabilities_fall_with_disagreement(truth: Labels) -> None:
    heads = _heads(truth, 8, wrong=0.0)
    other = int(np.flatnonzero(truth != truth[0])[0])
    heads[4:, 0] = heads[4:, other]  # half of the heads move the first image
    consensus = find_consensus(heads, seed=0)

    found = consensus.probabilities(heads)

    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    assert found[0].max() < 0.9
    assert np.median(found.max(axis=1)) > 0.95
    assert consensus.agreement > 0.9


def test_agreement_is_low_if_heads_are_random(truth: Labels) -> None:
    assert find_consensus(_heads(truth, 8, wrong=1.0), seed=0).agreement < 0.5


def test_fewer_different_images_than_clusters() -> None:
    heads = np.zeros((2, 3, N_CLUSTERS), dtype=np.float32)
    heads[:, :, 0] = 1

    found = find_consensus(heads, seed=0).probabilities(heads)

    assert np.isfinite(found).all()


def test_a_seed_gives_the_same_probabilities(truth: Labels) -> None:
    heads = _heads(truth, 5, wrong=0.3)
    first, again = (find_consensus(heads, seed=3).probabilities(heads) for _ in range(2))
    np.testing.assert_array_equal(first, again)
