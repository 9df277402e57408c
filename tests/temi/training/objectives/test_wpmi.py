import pytest

from temi.training.objectives import Wpmi
from tests.temi.training.objectives.slow import (
    GRID,
    Probs,
    check_against,
    check_gradient,
    check_only_the_student_learns,
    slow_agreement,
    slow_weighted_pmi,
)


def own_weight(teacher: Probs, head: int, x: int, other: int) -> float:
    return slow_agreement(teacher[head][x], teacher[head][other])


@pytest.mark.parametrize(("shape", "beta"), GRID)
def test_loss_is_the_papers(shape: tuple[int, int, int], beta: float) -> None:
    check_against(
        lambda s, t, o: slow_weighted_pmi(s, t, o, beta, own_weight), Wpmi(beta=beta), shape
    )


@pytest.mark.parametrize("beta", [0.501, 0.6, 1.0])
def test_gradient(beta: float) -> None:
    check_gradient(Wpmi(beta=beta))


def test_gradients_reach_the_student_only() -> None:
    check_only_the_student_learns(Wpmi(beta=0.6))
