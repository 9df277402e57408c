from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import temi.analysis.kmeans
from temi.analysis.kmeans import kmeans
from temi.analysis.metrics import evaluate
from temi.errors import InvalidConfig

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]


def test_finds_a_mixture_and_is_deterministic(mixture: Mixture) -> None:
    features, labels = mixture(200, n_groups=4)

    found = kmeans(features, 4, seed=1)

    assert evaluate(list(labels), found).accuracy == 1.0
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, kmeans(features, 4, seed=1))


def test_the_length_of_a_row_does_not_matter(mixture: Mixture) -> None:
    features, labels = mixture(120, n_groups=3)
    features *= np.random.default_rng(0).uniform(0.1, 10, size=(120, 1)).astype(np.float32)

    assert evaluate(list(labels), kmeans(features, 3)).accuracy == 1.0


def test_a_memory_map_is_not_changed(mixture: Mixture, tmp_path: Path) -> None:
    features, _ = mixture(90, n_groups=3)
    before = features.copy()
    np.save(tmp_path / "features.npy", features)

    found = kmeans(np.load(tmp_path / "features.npy", mmap_mode="r"), 3)

    np.testing.assert_array_equal(found, kmeans(features, 3))
    np.testing.assert_array_equal(features, before)


def test_a_large_set_is_fitted_on_a_sample(
    mixture: Mixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temi.analysis.kmeans, "FIT_ROWS", 60)
    monkeypatch.setattr(temi.analysis.kmeans, "FIT_ROWS_PER_CLUSTER", 1)
    features, labels = mixture(300, n_groups=4)

    found = kmeans(features, 4, seed=1)

    assert evaluate(list(labels), found).accuracy == 1.0
    np.testing.assert_array_equal(found, kmeans(features, 4, seed=1))


def test_more_clusters_than_images() -> None:
    with pytest.raises(InvalidConfig) as caught:
        kmeans(np.ones((3, 2), dtype=np.float32), 4)
    assert caught.value.field == "n_clusters"


def test_the_number_of_cores_changes_nothing(mixture: Mixture) -> None:
    features, _ = mixture(600, n_groups=4)
    blurred = features + np.random.default_rng(0).normal(0, 2, features.shape).astype(np.float32)
    found = []
    for threads in (1, 2, 7):
        with threadpool_limits(threads):
            found.append(kmeans(blurred, 6, seed=1))

    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
