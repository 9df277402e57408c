from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

from temi import start
from temi.metrics import evaluate
from temi.start import kmeans_targets, start_loss

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]


def test_every_head_gets_a_good_labelling(mixture: Mixture) -> None:
    features, labels = mixture(120, n_groups=4)

    targets = kmeans_targets(features, n_clusters=4, n_heads=6, seed=0)

    assert targets.shape == (6, 120)
    for head in targets.numpy():
        assert evaluate(list(labels), head).accuracy == 1.0


def test_centers_of_a_sample_serve_all_rows(
    mixture: Mixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_MAX_ROWS", 50)
    features, labels = mixture(300, n_groups=3)

    targets = kmeans_targets(features, n_clusters=3, n_heads=1, seed=0)

    assert evaluate(list(labels), targets[0].numpy()).accuracy == 1.0


def test_same_seed_same_labelling(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4, spread=2.0)

    first, second = (kmeans_targets(features, n_clusters=4, n_heads=5, seed=3) for _ in range(2))

    assert torch.equal(first, second)


def test_loss_is_the_mean_cross_entropy() -> None:
    logits = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[0, 1, 2, 0, 1], [2, 2, 1, 0, 0]])
    log_probs = logits.log_softmax(dim=-1)

    picked = [log_probs[h, b, targets[h, b]] for h in range(2) for b in range(5)]

    torch.testing.assert_close(start_loss(log_probs, targets), -torch.stack(picked).mean())
