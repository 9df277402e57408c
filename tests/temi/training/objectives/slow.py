"""The paper's formulas as slow loops in double precision, one number at a time."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.training.objectives import Objective
from temi.training.objectives.teacher import agreement

TAU = 0.1
BETAS = (0.5, 0.501, 0.55, 0.6, 0.8, 1.0)  # 0.5 itself is outside, the edge it approaches
SHAPES = ((1, 1, 2), (1, 4, 3), (3, 2, 5), (2, 8, 10))  # heads, pairs, clusters
LARGE = ((2, 2, 3000), (1, 1, 25_000))
GRID = [*itertools.product(SHAPES, BETAS), *itertools.product(LARGE, (0.501, 0.6, 1.0))]

Array = npt.NDArray[np.float64]
Probs = list[list[Array]]  # [head][row] -> (C,)


def softmax(logits: Array) -> Array:
    exps = np.exp((logits - logits.max()) / TAU)
    result: Array = exps / exps.sum()
    return result


def probabilities(logits: Array) -> Probs:
    return [[softmax(row) for row in head] for head in logits]


def slow_pmi(student: Array, teacher: Array, occupancy: Array, beta: float) -> float:
    total = 0.0
    for s, t, o in zip(student, teacher, occupancy, strict=True):
        total += (s * t) ** beta / o
    return math.log(total)


def slow_agreement(first: Array, second: Array) -> float:
    total = 0.0
    for p, q in zip(first, second, strict=True):
        total += p * q
    return total


def slow_weighted_pmi(
    student: Array,
    teacher: Array,
    occupancy: Array,
    beta: float,
    weight: Callable[[Probs, int, int, int], float],
) -> list[float]:
    """Loss of each head; logits are (H, 2B, C); ``weight`` gets (teacher, head, x, x')."""
    q_s, q_t = probabilities(student), probabilities(teacher)
    n_heads, n_pairs = len(student), student.shape[1] // 2
    totals = [0.0] * n_heads
    for head, x in itertools.product(range(n_heads), range(n_pairs)):
        other = x + n_pairs
        forth = slow_pmi(q_s[head][x], q_t[head][other], occupancy[head], beta)
        back = slow_pmi(q_s[head][other], q_t[head][x], occupancy[head], beta)
        totals[head] += weight(q_t, head, x, other) * -0.5 * (forth + back) / n_pairs
    return totals


def logits(seed: int, *shape: int, scale: float = 0.5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator) * scale


def log_probs(values: Tensor) -> Tensor:
    return (values / TAU).log_softmax(dim=-1)


def losses(objective: Objective, student: Tensor, teacher: Tensor, log_occupancy: Tensor) -> Tensor:
    """As the trainer calls an objective, from logits: (H,)."""
    log_teacher = log_probs(teacher)
    weight = objective.pair_weights(agreement(log_teacher))
    return objective.losses(log_probs(student), log_teacher, log_occupancy, weight)


def check_against(
    slow: Callable[[Array, Array, Array], list[float]],
    objective: Objective,
    shape: tuple[int, int, int],
) -> None:
    n_heads, n_pairs, n_clusters = shape
    student = logits(1, n_heads, 2 * n_pairs, n_clusters)
    teacher = logits(2, n_heads, 2 * n_pairs, n_clusters)
    log_occupancy = log_probs(logits(3, n_heads, n_clusters, scale=0.1))

    fast = losses(objective, student, teacher, log_occupancy)

    expected = slow(
        student.double().numpy(), teacher.double().numpy(), log_occupancy.double().exp().numpy()
    )
    np.testing.assert_allclose(fast.numpy(), expected, rtol=3e-5, atol=2e-6)


def check_gradient(objective: Objective, n_clusters: int = 4) -> None:
    """The gradient in the student's logits against central differences, in double precision."""
    student = logits(1, 2, 6, n_clusters).double().requires_grad_()
    teacher = logits(2, 2, 6, n_clusters).double()
    occupancy = log_probs(logits(3, 2, n_clusters, scale=0.1)).double()

    assert torch.autograd.gradcheck(
        lambda s: losses(objective, s, teacher, occupancy), (student,), eps=1e-6, atol=1e-7
    )


def check_only_the_student_learns(objective: Objective) -> None:
    student = logits(1, 2, 6, 4).requires_grad_()
    teacher = logits(2, 2, 6, 4).requires_grad_()
    occupancy = log_probs(logits(3, 2, 4)).requires_grad_()

    torch.autograd.backward(losses(objective, student, teacher, occupancy).sum())

    assert student.grad is not None
    assert student.grad.abs().sum() > 0
    assert teacher.grad is None
    assert occupancy.grad is None
