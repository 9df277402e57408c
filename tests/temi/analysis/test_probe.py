from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from temi.analysis.probe import ProbeConfig, fit_probe
from temi.errors import InvalidConfig, TemiError

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]
NAMES = ["cat", ("dog", 2), 3, frozenset({"owl"})]


def test_separates_a_mixture(mixture: Mixture) -> None:
    features, groups = mixture(400, n_groups=4)
    labels = [NAMES[group] for group in groups]

    result = fit_probe(
        features[:300], labels[:300], test=(features[300:], labels[300:]), device="cpu"
    )

    assert result.train_accuracy > 0.99
    assert result.test_accuracy is not None
    assert result.test_accuracy > 0.97
    assert (result.n_train, result.n_test, result.n_unlabeled) == (300, 100, 0)
    classifier = result.classifier
    assert classifier.classes == tuple(NAMES)
    assert classifier.weight.shape == (4, 16)
    hits = [a == b for a, b in zip(classifier.predict(features[300:]), labels[300:], strict=True)]
    assert np.mean(hits) == pytest.approx(result.test_accuracy)


def test_equals_a_loop_with_torch_modules(mixture: Mixture) -> None:
    """The same recipe with a torch layer and scheduler, from the same start and order."""
    features, groups = mixture(70, n_groups=3, dim=5, spread=2.0)
    config = ProbeConfig(epochs=4, batch_size=32, seed=9)
    x = torch.from_numpy((features - features.mean(axis=0)) / features.std(axis=0))
    y = torch.from_numpy(groups)
    layer = torch.nn.Linear(5, 3)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4 * 3)
    generator = torch.Generator().manual_seed(9)
    for _ in range(4):
        order = torch.randperm(70, generator=generator)
        for start in (0, 32, 64):
            ids = order[start : start + 32]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(layer(x[ids]), y[ids]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()

    found = fit_probe(features, list(groups), config=config, device="cpu").classifier

    np.testing.assert_allclose(found.weight, layer.weight.detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(found.bias, layer.bias.detach().numpy(), atol=1e-6)


def test_the_seed_determines_the_order(mixture: Mixture) -> None:
    features, groups = mixture(60, n_groups=3)

    def weight(seed: int, others_seed: int) -> npt.NDArray[np.float32]:
        config = ProbeConfig(seed=seed, epochs=3, batch_size=16)
        torch.manual_seed(others_seed)  # the state that all code shares must not matter
        return fit_probe(features, list(groups), config=config, device="cpu").classifier.weight

    np.testing.assert_array_equal(weight(1, 5), weight(1, 6))
    assert not np.array_equal(weight(1, 5), weight(2, 5))


def test_images_without_a_label_are_left_out(mixture: Mixture) -> None:
    features, groups = mixture(90, n_groups=3)
    labels: list[object | None] = list(groups)
    known = np.arange(90) % 4 != 0
    features[~known] += 1000  # would spoil the standardization
    with_gaps = [label if keep else None for label, keep in zip(labels, known, strict=True)]
    config = ProbeConfig(epochs=2)

    result = fit_probe(features, with_gaps, test=(features, with_gaps), config=config, device="cpu")
    expected = fit_probe(features[known], list(groups[known]), config=config, device="cpu")

    np.testing.assert_array_equal(result.classifier.weight, expected.classifier.weight)
    assert (result.n_train, result.n_test, result.n_unlabeled) == (67, 67, 46)
    assert result.train_accuracy == result.test_accuracy == expected.train_accuracy


def test_a_class_that_only_the_test_set_has_counts_as_an_error(mixture: Mixture) -> None:
    features, groups = mixture(80, n_groups=2)
    labels = [str(group) for group in groups]

    result = fit_probe(features, labels, test=(features, ["new"] * 40 + labels[40:]), device="cpu")

    assert result.train_accuracy == 1.0
    assert result.test_accuracy == 0.5
    assert result.classifier.classes == ("0", "1")


def test_no_test_accuracy_without_labeled_test_images(mixture: Mixture) -> None:
    features, groups = mixture(20, n_groups=2)
    config = ProbeConfig(epochs=1)

    for test in (None, (features, [None] * 20)):
        result = fit_probe(features, list(groups), test=test, config=config, device="cpu")
        assert result.test_accuracy is None
        assert result.n_test == 0


def test_memory_map_and_constant_dimension(mixture: Mixture, tmp_path: Path) -> None:
    features, groups = mixture(60, n_groups=3)
    features[:, 2] = 7.0
    np.save(tmp_path / "features.npy", features)

    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    result = fit_probe(mapped, list(groups), device="cpu")

    assert np.isfinite(result.classifier.weight).all()
    assert result.train_accuracy > 0.95


def test_invalid_inputs_are_refused(mixture: Mixture) -> None:
    features, groups = mixture(10, n_groups=2)
    with pytest.raises(TemiError, match="no training image has one"):
        fit_probe(features, [None] * 10)
    with pytest.raises(TemiError, match="9 labels"):
        fit_probe(features, list(groups[:9]))
    with pytest.raises(TemiError, match="NaN"):
        fit_probe(np.full((10, 2), np.nan), list(groups))
    with pytest.raises(InvalidConfig, match="epochs"):
        ProbeConfig(epochs=0)
    with pytest.raises(InvalidConfig, match="learning_rate"):
        ProbeConfig(learning_rate=float("nan"))
    with pytest.raises(InvalidConfig, match="weight_decay"):
        ProbeConfig(weight_decay=-1.0)
