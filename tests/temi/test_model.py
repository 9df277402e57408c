import numpy as np
import numpy.typing as npt
import pytest

from temi import standardize
from temi.errors import TemiError
from temi.model import ClusterModel


def tensors(seed: int = 0) -> dict[str, npt.NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    shapes = {"mean": (6,), "w1": (6, 8), "b1": (8,), "w2": (8, 4), "b2": (4,), "w3": (4, 3)}
    made = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return made | {"std": np.full(6, 2.0, dtype=np.float32)}


def features(n: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(n, 6)).astype(np.float32)


def test_shapes_and_types() -> None:
    model = ClusterModel.from_tensors(tensors(), 0.1)

    probs = model.predict_proba(features(5))

    assert (model.dim, model.n_clusters) == (6, 3)
    assert probs.shape == (5, 3)
    assert probs.dtype == np.float32
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(model.predict(features(5)), probs.argmax(axis=1))
    assert model.predict(features(5)).dtype == np.int64


def test_no_rows() -> None:
    assert ClusterModel(tensors(), 0.1).predict_proba(features(0)).shape == (0, 3)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ClusterModel(tensors(), 0.1)
    whole = model.predict_proba(features(20))
    monkeypatch.setattr(standardize, "CHUNK_ROWS", 3)

    np.testing.assert_allclose(model.predict_proba(features(20)), whole, atol=1e-6)


def test_temperature_sharpens() -> None:
    soft = ClusterModel(tensors(), 1.0).predict_proba(features(10)).max(axis=1)
    sharp = ClusterModel(tensors(), 0.1).predict_proba(features(10)).max(axis=1)

    assert (sharp >= soft).all()


def test_invalid_features_are_refused() -> None:
    with pytest.raises(TemiError, match=r"\(N, 6\)"):
        ClusterModel(tensors(), 0.1).predict(np.zeros((2, 5), dtype=np.float32))


@pytest.mark.parametrize("broken", ["missing", "rank", "fit"])
def test_invalid_tensors_are_refused(broken: str) -> None:
    given = tensors()
    if broken == "missing":
        del given["w2"]
    elif broken == "rank":
        given["w2"] = given["w2"][0]
    else:
        given["w2"] = given["w2"][:3]

    with pytest.raises(TemiError, match="not a cluster model"):
        ClusterModel(given, 0.1)


def test_probabilities_are_equal_alone_and_in_a_batch() -> None:
    rng = np.random.default_rng(2)
    shapes = {"mean": (300,), "w1": (300, 64), "b1": (64,), "w2": (64, 32), "b2": (32,)}
    large = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    large |= {"std": np.full(300, 2.0, np.float32), "w3": rng.normal(size=(32, 9)).astype("f4")}
    model = ClusterModel.from_tensors(large, 0.1)
    rows = rng.normal(size=(40, 300)).astype(np.float32)

    together = model.predict_proba(rows)

    for number, row in enumerate(rows):
        np.testing.assert_array_equal(model.predict_proba(row[None])[0], together[number])
