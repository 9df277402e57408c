"""A distilled head gives the target probabilities, for new rows too."""

import numpy as np
import torch

from temi.config import TrainConfig
from temi.training.distillation import distill
from tests.temi.conftest import Mixture


def _targets(groups: np.ndarray[tuple[int], np.dtype[np.integer]]) -> torch.Tensor:
    certain = torch.eye(4)[torch.from_numpy(groups).long()]
    return 0.9 * certain + 0.1 / 4


def test_probabilities_are_the_targets(mixture: Mixture) -> None:
    features, groups = mixture(400, n_groups=4)
    rows, targets = torch.from_numpy(features), _targets(groups)
    config = TrainConfig(n_clusters=4, seed=1)

    head = distill(rows[:300], targets[:300], config)

    with torch.no_grad():
        found = (head(rows[300:])[0] / config.temperature).softmax(dim=-1)
    assert (found.argmax(dim=1) == targets[300:].argmax(dim=1)).float().mean() > 0.97
    assert abs(float(found.max(dim=1).values.mean()) - 0.925) < 0.05


def test_a_seed_gives_the_same_head(mixture: Mixture) -> None:
    features, groups = mixture(60, n_groups=4)
    rows, config = torch.from_numpy(features), TrainConfig(n_clusters=4)

    first, again = (distill(rows, _targets(groups), config) for _ in range(2))

    assert torch.equal(first.w1, again.w1)
