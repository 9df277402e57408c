"""The loss against a slow double-precision loop written straight from the formulas."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from temi.objective import (
    ensemble_weight,
    pair_loss,
    temi_loss,
    uniform_log_occupancy,
    update_log_occupancy,
)

TAU = 0.1
Array = npt.NDArray[np.float64]


def slow_softmax(logits: Array) -> Array:
    exps = np.exp((logits - logits.max()) / TAU)
    result: Array = exps / exps.sum()
    return result


def slow_temi(student: Array, teacher: Array, occupancy: Array, beta: float) -> list[float]:
    """Loss of each head; logits are (H, 2B, C) with x in the first half and x' in the second."""
    n_heads, rows, n_clusters = student.shape
    n_pairs = rows // 2
    q_s = [[slow_softmax(student[h, r]) for r in range(rows)] for h in range(n_heads)]
    q_t = [[slow_softmax(teacher[h, r]) for r in range(rows)] for h in range(n_heads)]

    def pmi(h: int, x: int, other: int) -> float:
        return math.log(
            sum(
                (q_s[h][x][c] * q_t[h][other][c]) ** beta / occupancy[h, c]
                for c in range(n_clusters)
            )
        )

    totals = [0.0] * n_heads
    for b in range(n_pairs):
        x, other = b, b + n_pairs
        weight = sum(float(q_t[j][x] @ q_t[j][other]) for j in range(n_heads)) / n_heads
        for h in range(n_heads):
            totals[h] += weight * -0.5 * (pmi(h, x, other) + pmi(h, other, x)) / n_pairs
    return totals


def logits(seed: int, *shape: int, scale: float = 0.5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator) * scale


def log_probs(values: Tensor) -> Tensor:
    return (values / TAU).log_softmax(dim=-1)


@pytest.mark.parametrize(
    ("shape", "beta"),
    [
        *itertools.product(
            [(1, 1, 2), (1, 4, 3), (3, 2, 5), (2, 8, 10)], [0.5, 0.501, 0.55, 0.6, 0.8, 1.0]
        ),
        ((2, 2, 3000), 0.6),
        ((1, 2, 3000), 1.0),
    ],
)
def test_loss_is_the_papers(shape: tuple[int, int, int], beta: float) -> None:
    n_heads, n_pairs, n_clusters = shape
    student = logits(1, n_heads, 2 * n_pairs, n_clusters)
    teacher = logits(2, n_heads, 2 * n_pairs, n_clusters)
    log_occupancy = log_probs(logits(3, n_heads, n_clusters, scale=0.1))

    fast = temi_loss(log_probs(student), log_probs(teacher), log_occupancy, beta)

    slow = slow_temi(
        student.double().numpy(),
        teacher.double().numpy(),
        log_occupancy.double().exp().numpy(),
        beta,
    )
    np.testing.assert_allclose(fast.numpy(), slow, rtol=2e-5, atol=1e-6)


def test_one_pair_by_hand() -> None:
    """Both views certain of cluster 0 of two, uniform occupancy: pmi = log 2, weight 1."""
    certain = torch.log(torch.tensor([[[1.0, 1e-30], [1.0, 1e-30]]]))

    loss = temi_loss(certain, certain, uniform_log_occupancy(1, 2), 1.0)

    assert loss.item() == pytest.approx(-math.log(2), abs=1e-6)


def test_gradients_reach_the_student_only() -> None:
    student = logits(1, 2, 6, 4).requires_grad_()
    teacher = logits(2, 2, 6, 4).requires_grad_()
    occupancy = uniform_log_occupancy(2, 4).requires_grad_()

    temi_loss(log_probs(student), log_probs(teacher), occupancy, 0.6).mean().backward()  # type: ignore[no-untyped-call]

    assert student.grad is not None
    assert student.grad.abs().sum() > 0
    assert teacher.grad is None
    assert occupancy.grad is None


def test_loss_is_symmetric_in_the_views() -> None:
    student, teacher = log_probs(logits(1, 2, 8, 5)), log_probs(logits(2, 2, 8, 5))
    occupancy = uniform_log_occupancy(2, 5)

    swapped = pair_loss(student.roll(4, dims=1), teacher.roll(4, dims=1), occupancy, 0.6)

    torch.testing.assert_close(swapped, pair_loss(student, teacher, occupancy, 0.6))


def test_weight_is_the_mean_over_heads() -> None:
    teacher = log_probs(logits(5, 3, 4, 6))
    probs = teacher.exp()

    expected = (probs[:, :2] * probs[:, 2:]).sum(-1).mean(0)

    torch.testing.assert_close(ensemble_weight(teacher), expected)


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

    loss = temi_loss(teacher, teacher, occupancy, 0.6)

    assert torch.isfinite(occupancy).all()
    assert torch.isfinite(loss).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 100.0, 1e4]),
    beta=st.floats(0.5, 1.0),
    n_clusters=st.sampled_from([2, 7, 500]),
)
def test_loss_and_gradient_are_finite_for_any_logits(
    seed: int, scale: float, beta: float, n_clusters: int
) -> None:
    student = logits(seed, 2, 6, n_clusters, scale=scale).requires_grad_()
    teacher = log_probs(logits(seed + 1, 2, 6, n_clusters, scale=scale))
    occupancy = update_log_occupancy(uniform_log_occupancy(2, n_clusters), teacher, 0.9)

    losses = temi_loss(log_probs(student), teacher, occupancy, beta)
    (gradient,) = torch.autograd.grad(losses.mean(), student)

    assert torch.isfinite(losses).all()
    assert torch.isfinite(gradient).all()
