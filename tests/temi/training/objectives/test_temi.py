"""PMI, WPMI and TEMI against slow versions of the paper's formulas."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temi.config import ObjectiveName, TrainConfig
from temi.training.objectives import Pmi, Temi, Wpmi, make_objective
from temi.training.objectives.teacher import agreement, uniform_log_occupancy, update_log_occupancy
from temi.training.objectives.temi import pair_loss
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


def equal_weight(_teacher: Probs, _head: int, _x: int, _other: int) -> float:
    return 1.0


def own_weight(teacher: Probs, head: int, x: int, other: int) -> float:
    return slow_agreement(teacher[head][x], teacher[head][other])


def mean_weight(teacher: Probs, _head: int, x: int, other: int) -> float:
    return sum(slow_agreement(rows[x], rows[other]) for rows in teacher) / len(teacher)


WEIGHTS: dict[type[Pmi], Callable[[Probs, int, int, int], float]] = {
    Pmi: equal_weight,
    Wpmi: own_weight,
    Temi: mean_weight,
}
each_objective = pytest.mark.parametrize("objective", WEIGHTS)


@each_objective
@pytest.mark.parametrize(("shape", "beta"), GRID)
def test_loss_equals_the_paper(
    objective: type[Pmi], shape: tuple[int, int, int], beta: float
) -> None:
    check_against(
        lambda s, t, o: slow_weighted_pmi(s, t, o, beta, WEIGHTS[objective]),
        objective(beta=beta),
        shape,
    )


@each_objective
@pytest.mark.parametrize("beta", [0.501, 0.6, 1.0])
def test_gradient(objective: type[Pmi], beta: float) -> None:
    check_gradient(objective(beta=beta))


@each_objective
def test_only_the_student_gets_gradients(objective: type[Pmi]) -> None:
    check_only_the_student_learns(objective(beta=0.6))


def test_every_head_gets_the_mean_weight_of_all_heads() -> None:
    own = torch.tensor([[0.2, 1.0], [0.4, 0.0]])

    weights = Temi(beta=0.6).pair_weights(own)

    torch.testing.assert_close(weights, torch.tensor([[0.3, 0.5], [0.3, 0.5]]))


def test_a_head_gets_the_mean_weight_of_its_team() -> None:
    own = torch.tensor([[0.2], [0.4], [0.9]])

    weights = Temi(beta=0.6, n_teams=2).pair_weights(own)

    torch.testing.assert_close(weights, torch.tensor([[0.3], [0.3], [0.9]]))


def test_temi_with_one_head_equals_wpmi() -> None:
    student, teacher = logits(1, 1, 8, 5), logits(2, 1, 8, 5)
    occupancy = log_probs(logits(3, 1, 5))

    torch.testing.assert_close(
        losses(Temi(beta=0.7), student, teacher, occupancy),
        losses(Wpmi(beta=0.7), student, teacher, occupancy),
    )


def test_one_pair_by_hand() -> None:
    """Both views certain of cluster 0 of two, uniform occupancy: pmi = log 2."""
    certain = torch.log(torch.tensor([[[1.0, 1e-30], [1.0, 1e-30]]]))

    loss = pair_loss(certain, certain, uniform_log_occupancy(1, 2), 1.0)

    assert loss.item() == pytest.approx(-math.log(2), abs=1e-6)


def test_loss_is_symmetric_in_the_views() -> None:
    student, teacher = log_probs(logits(1, 2, 8, 5)), log_probs(logits(2, 2, 8, 5))
    occupancy = uniform_log_occupancy(2, 5)

    swapped = pair_loss(student.roll(4, dims=1), teacher.roll(4, dims=1), occupancy, 0.6)

    torch.testing.assert_close(swapped, pair_loss(student, teacher, occupancy, 0.6))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 100.0, 1e4]),
    beta=st.floats(0.5, 1.0, exclude_min=True),
    n_clusters=st.sampled_from([2, 7, 500]),
    name=st.sampled_from(["pmi", "wpmi", "temi", "scan"]),
)
def test_loss_and_gradient_are_finite_for_any_logits(
    seed: int, scale: float, beta: float, n_clusters: int, name: ObjectiveName
) -> None:
    objective = make_objective(TrainConfig(n_clusters=n_clusters, beta=beta, objective=name))
    student = logits(seed, 2, 6, n_clusters, scale=scale).requires_grad_()
    teacher = log_probs(logits(seed + 1, 2, 6, n_clusters, scale=scale))
    occupancy = update_log_occupancy(uniform_log_occupancy(2, n_clusters), teacher, 0.9)
    weights = objective.pair_weights(agreement(teacher))

    found = objective.losses(log_probs(student), teacher, occupancy, weights)
    (gradient,) = torch.autograd.grad(found.mean(), student)

    assert torch.isfinite(found).all()
    assert torch.isfinite(gradient).all()
