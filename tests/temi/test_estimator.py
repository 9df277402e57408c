import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from temi import TEMI, InvalidConfig, TemiError, TrainReport

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]


def quick(**changes: Any) -> TEMI:
    return TEMI(**({"n_clusters": 4, "n_heads": 2, "steps": 300, "batch_size": 64} | changes))


@pytest.fixture(scope="module")
def fitted() -> tuple[TEMI, npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 4
    features = (rng.normal(size=(4, 12))[labels] + 0.25 * rng.normal(size=(300, 12))).astype("f4")
    return quick().fit(features[:240]), features, labels


def test_fits_predicts_and_scores(
    fitted: tuple[TEMI, npt.NDArray[np.float32], npt.NDArray[np.int64]],
) -> None:
    model, features, labels = fitted

    assert model.score(features[240:], labels[240:].tolist()) > 0.95
    np.testing.assert_array_equal(model.labels_, model.predict(features[:240]))
    probs = model.predict_proba(features)
    assert probs.shape == (300, 4)
    np.testing.assert_array_equal(probs.argmax(axis=1), model.predict(features))
    assert model.n_features_in_ == 12
    assert model.neighbors_.shape[0] == 240
    assert model.report_.settled


def test_some_labels_are_kept_and_learned_from(mixture: Mixture) -> None:
    features, groups = mixture(80, n_groups=4)
    labels = np.full(80, -1)
    labels[:8] = 3 - groups[:8]
    labels[79] = groups[0]  # even one that the features contradict

    model = quick().fit(features, labels=labels)

    np.testing.assert_array_equal(model.labels_[labels >= 0], labels[labels >= 0])
    assert (model.labels_[8:79] == 3 - groups[8:79]).mean() > 0.95


def test_fit_predict_is_fit_then_labels(mixture: Mixture) -> None:
    features, _ = mixture(80, n_groups=4)

    found = quick().fit_predict(features)

    np.testing.assert_array_equal(found, quick().fit(features).labels_)


def test_neighbors_can_be_given(mixture: Mixture) -> None:
    features, labels = mixture(80, n_groups=4)
    same_group = np.array([np.flatnonzero(labels == label)[:8] for label in labels])

    model = quick().fit(features, neighbors=same_group)

    assert model.neighbors_ is same_group
    assert model.score(features, labels.tolist()) == 1.0


def test_is_a_scikit_learn_estimator() -> None:
    model = quick(beta=0.7)

    again = clone(model).set_params(n_heads=5)

    assert again.get_params() == model.get_params() | {"n_heads": 5}
    assert repr(model) == "TEMI(batch_size=64, beta=0.7, n_clusters=4, n_heads=2, steps=300)"


def test_a_saved_estimator_predicts_the_same(
    fitted: tuple[TEMI, npt.NDArray[np.float32], npt.NDArray[np.int64]], tmp_path: Path
) -> None:
    model, features, _ = fitted
    path = tmp_path / "groups.safetensors"

    model.save(path)
    again = TEMI.load(path)

    np.testing.assert_array_equal(again.predict_proba(features), model.predict_proba(features))
    assert again.get_params() == model.get_params()
    assert [file.name for file in tmp_path.iterdir()] == ["groups.safetensors"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    pickled = tmp_path / "model.pkl"
    pickled.write_bytes(pickle.dumps({"n_clusters": 3}))
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(safetensors.numpy.save({"w1": np.zeros(3)}))

    for path in (pickled, foreign):
        with pytest.raises(TemiError, match=r"not a file of TEMI\.save"):
            TEMI.load(path)
    with pytest.raises(FileNotFoundError):
        TEMI.load(tmp_path / "nowhere")


def test_settings_are_readable_in_the_file(
    fitted: tuple[TEMI, npt.NDArray[np.float32], npt.NDArray[np.int64]], tmp_path: Path
) -> None:
    fitted[0].save(tmp_path / "m")
    head = (tmp_path / "m").read_bytes()
    header = json.loads(head[8 : 8 + int.from_bytes(head[:8], "little")])

    assert json.loads(header["__metadata__"]["settings"])["n_clusters"] == 4


def test_progress_is_reported(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    seen: list[TrainReport] = []

    with pytest.warns(ConvergenceWarning, match="but the assignments still changed"):
        quick(steps=25, progress=seen.append).fit(features)

    assert [report.step for report in seen] == [10, 20, 25]


def test_the_number_of_clusters_is_found(mixture: Mixture, tmp_path: Path) -> None:
    features, labels = mixture(160, n_groups=4)
    model = quick(n_clusters="auto").fit(features)

    assert model.count_ is not None
    assert model.count_.suggested[0] == model.model_.n_clusters == 4
    assert model.score(features, labels.tolist()) == 1.0
    model.save(tmp_path / "found")
    assert TEMI.load(tmp_path / "found").n_clusters == "auto"


def test_the_papers_recipe() -> None:
    config = TEMI(7, recipe="paper", beta=0.55)._config().resolve(5000)

    assert (config.n_heads, config.n_neighbors, config.batch_size) == (50, 50, 512)
    assert (config.learning_rate, config.teacher_momentum) == (1e-4, 0.996)
    assert (config.beta, config.projection_dim, config.early_stop) == (0.55, None, False)
    assert config.steps == -(-200 * 5000 // 512)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"recipe": "fast"}, "recipe"),
        ({"n_clusters": 1}, "n_clusters"),
        ({"n_clusters": 61}, "n_clusters"),
        ({"objective": "kmeans"}, "objective"),
        ({"precision": "int8"}, "precision"),
        ({"beta": 0.5}, "beta"),
        ({"steps": 3, "epochs": 3}, "epochs"),
    ],
)
def test_settings_are_checked_by_fit(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        quick(**settings).fit(np.zeros((60, 3), dtype=np.float32))

    assert caught.value.field == field


@pytest.mark.parametrize(
    "features", [np.zeros(5), np.zeros((0, 4)), np.array([["a", "b"]]), np.zeros((2, 2, 2))]
)
def test_features_must_be_a_numeric_matrix(features: Any) -> None:
    with pytest.raises(TemiError, match="must be numbers of shape"):
        quick().fit(features)


def test_unfitted() -> None:
    with pytest.raises(NotFittedError):
        quick().predict(np.zeros((2, 3)))


def test_score_without_labels(
    fitted: tuple[TEMI, npt.NDArray[np.float32], npt.NDArray[np.int64]],
) -> None:
    with pytest.raises(TemiError, match="no image has a label"):
        fitted[0].score(fitted[1][:2], [None, None])
