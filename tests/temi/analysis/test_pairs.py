from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from temi.analysis import pairs
from temi.analysis.pairs import keep_true_pairs, neighbor_precision, pair_weights
from temi.errors import TemiError

Ids = npt.NDArray[np.int64]
Labels = list[str | None]


def random_case(seed: int, n: int = 40, k: int = 6) -> tuple[Ids, Labels]:
    """Neighbors and labels with missing values."""
    rng = np.random.default_rng(seed)
    neighbors = np.array([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    neighbors[rng.random((n, k)) < 0.2] = -1
    neighbors[3] = -1
    names: Labels = ["cat", "dog", "owl", None]
    return neighbors, [names[i] for i in rng.integers(4, size=n)]


def judged(neighbors: Ids, labels: Labels, x: int) -> tuple[list[int], list[int]]:
    """Return the true and false neighbors of x, in order."""
    others = [int(i) for i in neighbors[x] if i >= 0 and labels[i] is not None]
    if labels[x] is None:
        return [], []
    true = [i for i in others if labels[i] == labels[x]]
    return true, [i for i in others if labels[i] != labels[x]]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_precision_equals_a_slow_loop(seed: int) -> None:
    neighbors, labels = random_case(seed)
    shares = []
    for x in range(len(labels)):
        true, false = judged(neighbors, labels, x)
        shares.append(len(true) / len(true + false) if true + false else np.nan)

    result = neighbor_precision(neighbors, labels)

    np.testing.assert_allclose(result.shares, shares)
    assert result.mean == pytest.approx(np.nanmean(shares))
    assert result.n_unlabeled == labels.count(None)
    assert result.n_without_neighbors == int(np.isnan(shares).sum()) - labels.count(None)


def test_precision_by_hand() -> None:
    neighbors = np.array([[1, 2], [0, 3], [3, -1], [2, 0]])

    result = neighbor_precision(neighbors, ["a", "a", "b", None])

    np.testing.assert_array_equal(result.shares, [0.5, 1.0, np.nan, np.nan])
    assert result.mean == 0.75
    assert (result.n_unlabeled, result.n_without_neighbors) == (1, 1)


def test_precision_without_labels() -> None:
    result = neighbor_precision(np.array([[1], [0]]), [None, None])

    assert result.mean is None
    assert result.n_unlabeled == 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_true_pairs_equal_a_slow_loop(seed: int) -> None:
    neighbors, labels = random_case(seed)

    kept = keep_true_pairs(neighbors.astype(np.int32), labels)

    assert kept.dtype == np.int64
    assert kept.shape == neighbors.shape
    for x, row in enumerate(kept.tolist()):
        true, _ = judged(neighbors, labels, x)
        assert row == true + [-1] * (neighbors.shape[1] - len(true))


def test_true_pairs_are_all_true() -> None:
    neighbors, labels = random_case(5)

    kept = keep_true_pairs(neighbors, labels)

    assert neighbor_precision(kept, labels).mean == 1.0
    np.testing.assert_array_equal(keep_true_pairs(kept, labels), kept)


@pytest.mark.parametrize("chunk_values", [1, 100, 2**22])
def test_weights_equal_a_slow_loop(chunk_values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_CHUNK_VALUES", chunk_values)
    neighbors, labels = random_case(3)
    probs = np.random.default_rng(3).dirichlet(np.ones(5), size=(4, len(labels)))  # (H, N, C)
    sums: tuple[list[float], list[float]] = ([], [])
    for x in range(len(labels)):
        for bucket, others in zip(sums, judged(neighbors, labels, x), strict=True):
            for other in others:
                heads = [sum(head[x][c] * head[other][c] for c in range(5)) for head in probs]
                bucket.append(sum(heads) / len(heads))

    result = pair_weights(probs, neighbors, labels)

    assert result.true == pytest.approx(np.mean(sums[0]))
    assert result.false == pytest.approx(np.mean(sums[1]))
    assert (result.n_true, result.n_false) == (len(sums[0]), len(sums[1]))


def test_heads_can_be_an_iterator() -> None:
    neighbors, labels = random_case(4)
    probs = np.random.default_rng(4).dirichlet(np.ones(3), size=(2, len(labels)))

    def heads() -> Iterator[npt.NDArray[np.float64]]:
        yield from probs

    assert pair_weights(heads(), neighbors, labels) == pair_weights(probs, neighbors, labels)


def test_one_hot_heads_that_equal_the_labels() -> None:
    neighbors = np.array([[1, 2], [0, 2], [0, 1]])
    probs = np.eye(2)[[0, 0, 1]]

    result = pair_weights([probs], neighbors, ["a", "a", "b"])

    assert (result.true, result.false) == (1.0, 0.0)
    assert result.as_dict() == {"true": 1.0, "false": 0.0, "n_true": 2, "n_false": 4}


def test_the_mean_of_no_pairs_is_none() -> None:
    result = pair_weights([np.eye(2)], np.array([[1], [0]]), ["a", "a"])

    assert (result.true, result.false) == (0.0, None)


def test_invalid_arrays_are_refused() -> None:
    neighbors = np.array([[1], [0]])
    with pytest.raises(TemiError, match="shape"):
        neighbor_precision(neighbors, ["a"])
    with pytest.raises(TemiError, match="must be image ids"):
        keep_true_pairs(neighbors + 1, ["a", "b"])
    with pytest.raises(TemiError, match="must be image ids"):
        keep_true_pairs(neighbors - 2, ["a", "b"])
    with pytest.raises(TemiError, match="at least one head"):
        pair_weights([], neighbors, ["a", "b"])
    with pytest.raises(TemiError, match="shape"):
        pair_weights([np.eye(3)], neighbors, ["a", "b"])
