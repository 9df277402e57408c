import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temi.config import TrainConfig
from temi.training.objectives import Pmi, make_objective
from temi.training.objectives.pmi import pair_loss
from temi.training.objectives.teacher import agreement, uniform_log_occupancy, update_log_occupancy
from tests.temi.training.objectives.slow import (
    GRID,
    check_against,
    check_gradient,
    check_only_the_student_learns,
    log_probs,
    logits,
    slow_weighted_pmi,
)


@pytest.mark.parametrize(("shape", "beta"), GRID)
def test_loss_is_the_papers(shape: tuple[int, int, int], beta: float) -> None:
    check_against(
        lambda s, t, o: slow_weighted_pmi(s, t, o, beta, lambda *_: 1.0), Pmi(beta=beta), shape
    )


@pytest.mark.parametrize("beta", [0.501, 0.6, 1.0])
def test_gradient(beta: float) -> None:
    check_gradient(Pmi(beta=beta))


def test_gradients_reach_the_student_only() -> None:
    check_only_the_student_learns(Pmi(beta=0.6))


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
    seed: int, scale: float, beta: float, n_clusters: int, name: str
) -> None:
    made = make_objective(TrainConfig(n_clusters=n_clusters, beta=beta, objective=name))
    student = logits(seed, 2, 6, n_clusters, scale=scale).requires_grad_()
    teacher = log_probs(logits(seed + 1, 2, 6, n_clusters, scale=scale))
    occupancy = update_log_occupancy(uniform_log_occupancy(2, n_clusters), teacher, 0.9)

    losses = made.losses(log_probs(student), teacher, occupancy, made.weigh(agreement(teacher)))
    (gradient,) = torch.autograd.grad(losses.mean(), student)

    assert torch.isfinite(losses).all()
    assert torch.isfinite(gradient).all()
