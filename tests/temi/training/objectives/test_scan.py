import itertools
import math

import numpy as np
import pytest
import torch

from temi.training.objectives import Scan
from tests.temi.training.objectives.slow import (
    LARGE,
    SHAPES,
    Array,
    check_against,
    check_gradient,
    check_only_the_student_learns,
    log_probs,
    losses,
    probabilities,
    slow_agreement,
)


def slow_scan(student: Array, teacher: Array, entropy_weight: float) -> list[float]:
    q_s, q_t = probabilities(student), probabilities(teacher)
    n_rows = student.shape[1]
    totals = []
    for head in range(len(student)):
        consistency = 0.0
        for x in range(n_rows):
            other = (x + n_rows // 2) % n_rows
            consistency -= math.log(slow_agreement(q_s[head][x], q_t[head][other])) / n_rows
        mean = np.mean(q_s[head], axis=0)
        totals.append(consistency + entropy_weight * sum(p * math.log(p) for p in mean))
    return totals


@pytest.mark.parametrize(
    ("shape", "entropy_weight"),
    [*itertools.product([*SHAPES, *LARGE], [0.0, 1.0, 4.0])],
)
def test_loss_is_the_papers(shape: tuple[int, int, int], entropy_weight: float) -> None:
    check_against(
        lambda s, t, _: slow_scan(s, t, entropy_weight),
        Scan(entropy_weight=entropy_weight),
        shape,
    )


def test_gradient() -> None:
    check_gradient(Scan(entropy_weight=4.0))


def test_gradients_reach_the_student_only() -> None:
    check_only_the_student_learns(Scan(entropy_weight=4.0))


def test_even_use_of_clusters_is_rewarded() -> None:
    even = torch.eye(4)[None]  # (1, 4, 4): two pairs, four clusters, one image each
    lumped = torch.eye(4)[None, :1].expand(1, 4, 4)
    occupancy = log_probs(torch.zeros(1, 4))
    scan = Scan(entropy_weight=4.0)

    same_view = even.roll(2, dims=1)  # the teacher agrees with the student's other view
    assert losses(scan, even, same_view, occupancy) < losses(scan, lumped, lumped, occupancy)
