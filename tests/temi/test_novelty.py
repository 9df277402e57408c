"""Images unlike those of the training are novel."""

import numpy as np
import numpy.typing as npt
import pytest

from temi import novelty
from temi.errors import TemiError
from temi.novelty import QUANTILES, NoveltyDetector, fit_novelty


def _images(n: int, kind: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Images of one kind point roughly in one direction."""
    noise = np.random.default_rng(seed).normal(size=(n, 16))
    return np.asarray(noise + 8 * np.eye(16)[kind], dtype=np.float32)


def test_other_images_are_novel() -> None:
    detector = fit_novelty(np.concatenate([_images(300, 0), _images(300, 1, seed=1)]))
    assert (detector.novelty(_images(100, 2, seed=2)) == 1).all()
    known = detector.novelty(_images(2000, 1, seed=3))
    assert known.mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_known_images_are_refused_at_the_rate(rate: float) -> None:
    detector = fit_novelty(_images(5000, 0))
    refused = np.mean(detector.novelty(_images(5000, 0, seed=1)) > 1 - rate)
    assert refused == pytest.approx(rate, rel=0.4)


def test_the_score_is_the_distance_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(novelty, "_CHUNK", 7)
    features, new = _images(40, 0), _images(25, 1, seed=1)
    detector = fit_novelty(features)
    unit, other = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (features, new))
    slow = [min(1 - float(row @ each) for each in unit) for row in other]
    np.testing.assert_allclose(detector.score(new), slow, atol=1e-6)
    lone = [min(1 - float(unit[i] @ unit[j]) for j in range(40) if j != i) for i in range(40)]
    expected = np.quantile(lone, np.linspace(0, 1, QUANTILES))
    np.testing.assert_allclose(detector.tensors()["quantiles"], expected, atol=1e-6)


def test_an_image_has_one_novelty_alone_and_in_a_batch() -> None:
    detector, new = fit_novelty(_images(500, 0)), _images(64, 0, seed=1)
    alone = [detector.novelty(new[row : row + 1])[0] for row in range(64)]
    assert alone == detector.novelty(new).tolist()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(novelty, "MAX_REFERENCES", 32)
    monkeypatch.setattr(novelty, "_MAX_SCORED", 100)
    detector = fit_novelty(_images(1000, 0))
    assert detector.tensors()["references"].shape == (32, 16)
    assert 0.2 < detector.novelty(_images(500, 0, seed=1)).mean() < 0.8


def test_it_is_stored_and_loaded() -> None:
    detector, new = fit_novelty(_images(200, 0)), _images(20, 1)
    again = NoveltyDetector(detector.tensors())
    assert again.novelty(new).tolist() == detector.novelty(new).tolist()


def test_equal_and_empty_images_are_possible() -> None:
    features = np.zeros((10, 4), dtype=np.float32)
    features[:9, 0] = 1
    found = fit_novelty(features).novelty(np.eye(4, dtype=np.float32))
    assert ((found >= 0) & (found <= 1)).all()


def test_what_is_refused() -> None:
    with pytest.raises(TemiError, match="at least two"):
        fit_novelty(_images(1, 0))
    detector = fit_novelty(_images(50, 0))
    with pytest.raises(TemiError, match="shape"):
        detector.score(np.zeros((2, 3)))
    tensors = detector.tensors()
    with pytest.raises(TemiError, match="quantiles missing"):
        NoveltyDetector({"references": tensors["references"]})
    with pytest.raises(TemiError, match="must ascend"):
        NoveltyDetector(tensors | {"quantiles": tensors["quantiles"][::-1]})
    with pytest.raises(TemiError, match="shapes"):
        NoveltyDetector(tensors | {"quantiles": tensors["quantiles"][:5]})
