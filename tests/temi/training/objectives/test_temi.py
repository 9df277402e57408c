import pytest
import torch

from temi.training.objectives import Temi, Wpmi
from tests.temi.training.objectives.slow import (
    GRID,
    Probs,
    check_against,
    check_gradient,
    check_only_the_student_learns,
    log_probs,
    logits,
    losses,
    slow_agreement,
    slow_weighted_pmi,
)


def mean_weight(teacher: Probs, head: int, x: int, other: int) -> float:
    return sum(slow_agreement(rows[x], rows[other]) for rows in teacher) / len(teacher)


@pytest.mark.parametrize(("shape", "beta"), GRID)
def test_loss_is_the_papers(shape: tuple[int, int, int], beta: float) -> None:
    check_against(
        lambda s, t, o: slow_weighted_pmi(s, t, o, beta, mean_weight), Temi(beta=beta), shape
    )


@pytest.mark.parametrize("beta", [0.501, 0.6, 1.0])
def test_gradient(beta: float) -> None:
    check_gradient(Temi(beta=beta))


def test_gradients_reach_the_student_only() -> None:
    check_only_the_student_learns(Temi(beta=0.6))


def test_every_head_gets_the_mean_of_all_heads() -> None:
    own = torch.tensor([[0.2, 1.0], [0.4, 0.0]])

    weights = Temi(beta=0.6).weigh(own)

    torch.testing.assert_close(weights, torch.tensor([[0.3, 0.5], [0.3, 0.5]]))


def test_with_one_head_it_is_wpmi() -> None:
    student, teacher = logits(1, 1, 8, 5), logits(2, 1, 8, 5)
    occupancy = log_probs(logits(3, 1, 5))

    torch.testing.assert_close(
        losses(Temi(beta=0.7), student, teacher, occupancy),
        losses(Wpmi(beta=0.7), student, teacher, occupancy),
    )
