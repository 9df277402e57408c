"""Every rival on small synthetic sets."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks.rivals import RIVALS, Fitted, Rival
from benchmarks.rivals.base import Features, Labels
from benchmarks.rivals.iic import Iic
from benchmarks.rivals.nnm import Nnm
from benchmarks.rivals.published import PUBLISHED
from benchmarks.rivals.scan import Scan
from benchmarks.rivals.sela import Sela
from benchmarks.rivals.spaces import PROJECTION_DIM, UnitSpace
from benchmarks.rivals.sscn import Sscn
from benchmarks.rivals.turtle import Turtle
from temi.analysis.metrics import evaluate
from temi.errors import InvalidConfig, TemiError

N_CLUSTERS = 6
BY_NAME = {rival.name: rival for rival in RIVALS}

# Few images need no long run, and no more steps make an error appear.
SHORT: tuple[Rival, ...] = tuple(
    replace(rival, steps=40)
    if isinstance(rival, Iic | Nnm | Scan | Sela | Sscn | Turtle)
    else rival
    for rival in RIVALS
)

all_rivals = pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
short_rivals = pytest.mark.parametrize("rival", SHORT, ids=lambda rival: rival.name)


def blobs(sizes: tuple[int, ...], seed: int) -> tuple[Features, Labels]:
    """Gaussian blobs in 32 dimensions; the centers are the same for every seed."""
    centers = 3.0 * np.random.default_rng(7).normal(size=(len(sizes), 32))
    classes = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).normal(size=(len(classes), 32))
    return (centers[classes] + 0.5 * noise).astype(np.float32), classes


def accuracy(classes: Labels, clusters: Labels) -> float:
    found = evaluate(classes.tolist(), clusters).accuracy
    assert found is not None
    return found


@cache
def fitted(name: str) -> Fitted:
    features, _ = blobs((40,) * N_CLUSTERS, seed=0)
    return BY_NAME[name].fit(features, N_CLUSTERS, seed=0)


@all_rivals
def test_separated_clusters_are_found(rival: Rival) -> None:
    _, classes = blobs((40,) * N_CLUSTERS, seed=0)
    found = fitted(rival.name)

    assert found.labels.shape == classes.shape
    assert found.labels.dtype == np.int64
    assert accuracy(classes, found.labels) > 0.95


@all_rivals
def test_new_rows_get_the_cluster_of_their_class(rival: Rival) -> None:
    _, classes = blobs((40,) * N_CLUSTERS, seed=0)
    new, new_classes = blobs((5,) * N_CLUSTERS, seed=1)
    found = fitted(rival.name)
    predicted = found.predict(new)

    assert predicted.dtype == np.int64
    together = np.concatenate([found.labels, predicted])
    assert accuracy(np.concatenate([classes, new_classes]), together) > 0.95
    assert accuracy(new_classes, predicted) > 0.95


@short_rivals
def test_few_images_give_the_same_result_twice(rival: Rival) -> None:
    features = np.random.default_rng(0).normal(size=(12, 32)).astype(np.float32)
    new = np.random.default_rng(1).normal(size=(4, 32)).astype(np.float32)
    first, second = (rival.fit(features, 5, seed=3) for _ in range(2))

    assert first.labels.shape == (12,)
    assert set(first.labels.tolist()) <= set(range(5))
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.predict(new), second.predict(new))


@short_rivals
def test_fewer_distinct_images_than_clusters(rival: Rival) -> None:
    features = np.repeat(np.eye(3, 32, dtype=np.float32), 4, axis=0)
    found = rival.fit(features, 5, seed=0)

    assert found.labels.shape == (12,)
    assert set(found.labels.tolist()) <= set(range(5))
    assert set(found.predict(features[:1]).tolist()) <= set(range(5))


def test_fewer_images_than_principal_directions() -> None:
    features = np.random.default_rng(0).normal(size=(12, 300)).astype(np.float32)
    rows = UnitSpace.fit(features).rows(features)

    assert rows.shape == (12, PROJECTION_DIM)
    np.testing.assert_allclose(rows.norm(dim=1).numpy(), np.ones(12), rtol=1e-5)


@short_rivals
def test_wrong_inputs_are_named(rival: Rival) -> None:
    features = np.zeros((4, 3), dtype=np.float32)

    with pytest.raises(InvalidConfig, match="n_clusters"):
        rival.fit(features, 5, seed=0)
    with pytest.raises(TemiError, match="shape"):
        rival.fit(features[0], 2, seed=0)
    with pytest.raises(TemiError, match="NaN"):
        rival.fit(np.full_like(features, np.nan), 2, seed=0)


def test_sela_makes_clusters_of_equal_size() -> None:
    features, _ = blobs((100, 20, 20, 20, 20, 20), seed=0)
    sizes = np.bincount(Sela().fit(features, 5, seed=0).labels, minlength=5)

    assert sizes.sum() == 200
    assert sizes.max() <= 1.2 * 40
    assert sizes.min() >= 0.8 * 40


def test_published_figures_have_a_source_and_stand_beside_temi() -> None:
    systems = [row.system for row in PUBLISHED]

    assert {"DAC", "DeepCluster", "DCCM", "PICA", "PCL", "ProPos", "SPICE"} <= set(systems)
    assert any(system.startswith("TEMI") for system in systems)
    assert len(set(systems)) == len(systems)
    assert all(row.source for row in PUBLISHED)
