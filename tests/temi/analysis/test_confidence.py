from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from temi.analysis import confidence
from temi.analysis.confidence import ConfidenceTally, measure_confidence
from temi.errors import TemiError


def some_probs(n: int, n_clusters: int, *, seed: int = 0) -> npt.NDArray[np.float32]:
    """Rows from nearly uniform to one-hot, including exact zeros and ones."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_clusters, 0.3), size=n)
    probs[::5] = np.eye(n_clusters)[rng.integers(n_clusters, size=len(probs[::5]))]
    return probs.astype(np.float32)


def slow_entropy(distribution: list[float]) -> float:
    return -sum(p * float(np.log(p)) for p in distribution if p > 0)


@pytest.mark.parametrize(("n", "n_clusters"), [(1, 2), (40, 3), (57, 10), (9, 30)])
def test_equals_a_slow_loop(n: int, n_clusters: int) -> None:
    probs = some_probs(n, n_clusters)
    rows = [[float(p) for p in row] for row in probs]
    marginal = [sum(row[c] for row in rows) / n for c in range(n_clusters)]
    winners = [max(range(n_clusters), key=row.__getitem__) for row in rows]
    sizes = [winners.count(c) for c in range(n_clusters)]
    conditional = sum(slow_entropy(row) for row in rows) / n
    kl = sum(s / n * float(np.log(s / n * n_clusters)) for s in sizes if s)

    result = measure_confidence(probs)

    assert result.mean_probability == pytest.approx(sum(max(row) for row in rows) / n)
    assert result.median_probability == pytest.approx(np.median([max(row) for row in rows]))
    assert result.occupancy_entropy == pytest.approx(slow_entropy(marginal))
    assert result.conditional_entropy == pytest.approx(conditional)
    assert result.mutual_information == pytest.approx(
        slow_entropy(marginal) - conditional, abs=1e-6
    )
    assert result.max_entropy == pytest.approx(np.log(n_clusters))
    assert result.size_kl == pytest.approx(kl)
    assert result.cluster_sizes == tuple(sizes)
    assert result.empty_clusters == sizes.count(0)


def test_confident_assignments_to_balanced_clusters() -> None:
    result = measure_confidence(np.eye(4)[[0, 1, 2, 3, 3, 2, 1, 0]])

    assert (result.mean_probability, result.median_probability) == (1.0, 1.0)
    assert result.conditional_entropy == 0.0
    assert result.occupancy_entropy == pytest.approx(np.log(4))
    assert result.mutual_information == pytest.approx(np.log(4))
    assert result.size_kl == pytest.approx(0.0, abs=1e-12)
    assert result.empty_clusters == 0


def test_all_images_in_one_cluster() -> None:
    result = measure_confidence(np.eye(4)[[2, 2, 2]])

    assert result.occupancy_entropy == 0.0
    assert result.size_kl == pytest.approx(np.log(4))
    assert (result.empty_clusters, result.cluster_sizes) == (3, (0, 0, 3, 0))


def test_uniform_probabilities() -> None:
    result = measure_confidence(np.full((6, 5), 0.2, dtype=np.float32))

    assert result.conditional_entropy == pytest.approx(np.log(5))
    assert result.mutual_information == pytest.approx(0.0, abs=1e-6)
    assert result.mutual_information >= 0


def test_the_sizes_of_chunks_and_blocks_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probs = some_probs(100, 7)
    np.save(tmp_path / "probs.npy", probs)
    whole = measure_confidence(probs)

    monkeypatch.setattr(confidence, "_CHUNK_VALUES", 50)
    mapped = measure_confidence(np.load(tmp_path / "probs.npy", mmap_mode="r"))
    tally = ConfidenceTally(7)
    for start in (0, 1, 40):
        tally.add(probs[start : {0: 1, 1: 40, 40: 100}[start]])

    for other in (mapped, tally.result()):
        assert other.cluster_sizes == whole.cluster_sizes
        for name in ("occupancy_entropy", "conditional_entropy", "mean_probability", "size_kl"):
            assert getattr(other, name) == pytest.approx(getattr(whole, name))
    np.testing.assert_array_equal(tally.assigned(), probs.argmax(axis=1))
    np.testing.assert_array_equal(tally.probability().astype(np.float32), probs.max(axis=1))


def test_half_precision_is_accepted() -> None:
    probs = some_probs(50, 20)

    half = measure_confidence(probs.astype(np.float16))

    expected = measure_confidence(probs).conditional_entropy
    assert half.conditional_entropy == pytest.approx(expected, abs=1e-2)


def test_as_dict_is_plain() -> None:
    values = measure_confidence(some_probs(10, 3)).as_dict()

    assert all(type(v) in (int, float, tuple) for v in values.values())
    sizes = values["cluster_sizes"]
    assert isinstance(sizes, tuple)
    assert all(type(size) is int for size in sizes)


@pytest.mark.parametrize(
    "probs",
    [
        np.array([[0.5, 0.2]]),
        np.array([[1.5, -0.5]]),
        np.array([[np.nan, 1.0]]),
        np.array([0.5, 0.5]),
        np.empty((0, 3)),
        np.empty((3, 0)),
    ],
    ids=["sum", "negative", "nan", "one dimension", "no images", "no clusters"],
)
def test_invalid_probabilities_are_refused(probs: npt.NDArray[np.float64]) -> None:
    with pytest.raises(TemiError):
        measure_confidence(probs)


def test_a_block_of_another_width_is_refused() -> None:
    with pytest.raises(TemiError, match="shape"):
        ConfidenceTally(3).add(np.full((2, 2), 0.5))
