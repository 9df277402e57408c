import torch

from temi.training.objectives import Temi
from temi.training.objectives.teacher import agreement, uniform_log_occupancy, update_log_occupancy
from tests.temi.training.objectives.slow import log_probs, logits


def test_agreement_of_each_head() -> None:
    teacher = log_probs(logits(5, 3, 4, 6))
    probs = teacher.exp()

    torch.testing.assert_close(agreement(teacher), (probs[:, :2] * probs[:, 2:]).sum(-1))


def test_occupancy_moves_towards_the_batch_of_both_views() -> None:
    teacher = log_probs(logits(7, 2, 10, 4))

    updated = update_log_occupancy(uniform_log_occupancy(2, 4), teacher, 0.9)

    expected = 0.9 * 0.25 + 0.1 * teacher.exp().mean(dim=1)
    torch.testing.assert_close(updated.exp(), expected)


def test_occupancy_without_memory_is_the_batch() -> None:
    teacher = log_probs(logits(7, 2, 10, 4))

    updated = update_log_occupancy(uniform_log_occupancy(2, 4), teacher, 0.0)

    torch.testing.assert_close(updated.exp(), teacher.exp().mean(dim=1))


def test_an_abandoned_cluster_never_becomes_infinite() -> None:
    teacher = torch.tensor([[[0.0, -1e4], [0.0, -1e4]]])
    occupancy = uniform_log_occupancy(1, 2)
    for _ in range(5000):
        occupancy = update_log_occupancy(occupancy, teacher, 0.9)
    objective = Temi(beta=0.6)

    loss = objective.losses(teacher, teacher, occupancy, objective.pair_weights(agreement(teacher)))

    assert torch.isfinite(occupancy).all()
    assert torch.isfinite(loss).all()
