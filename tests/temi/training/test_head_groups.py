import resource
import subprocess
import sys

import pytest
import torch

from temi.config import TrainConfig
from temi.training.head_groups import (
    HeadGroup,
    StepInputs,
    concat_states,
    heads_per_group,
    load_states,
)
from temi.training.objectives import make_objective
from temi.training.objectives.teacher import agreement

CPU = torch.device("cpu")


def config(**changes: object) -> TrainConfig:
    small = {"n_heads": 5, "hidden_dim": 8, "bottleneck_dim": 4, "batch_size": 6, "steps": 10}
    return TrainConfig.from_dict({"n_clusters": 3, "beta": 0.6} | small | changes)


def groups(sizes: list[int], settings: TrainConfig) -> list[HeadGroup]:
    generator = torch.Generator().manual_seed(0)
    return [
        HeadGroup(settings, n_heads=size, dim=7, generator=generator, device=CPU) for size in sizes
    ]


def train(head_groups: list[HeadGroup], settings: TrainConfig, steps: int = 3) -> None:
    objective = make_objective(settings)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        views = torch.randn(12, 7, generator=generator)
        log_teachers = [group.forward_teacher(views) for group in head_groups]
        weights = objective.pair_weights(torch.cat([agreement(t) for t in log_teachers]))
        step = StepInputs(
            views=views, objective=objective, learning_rate=1e-2, teacher_momentum=0.9
        )
        group_weights = torch.split(weights, [len(t) for t in log_teachers])
        for group, log_teacher, weight in zip(
            head_groups, log_teachers, group_weights, strict=True
        ):
            group.train_student(log_teacher, weight, step=step)


@pytest.mark.parametrize("objective", ["temi", "wpmi", "pmi", "scan"])
def test_the_grouping_of_heads_changes_nothing(objective: str) -> None:
    settings = config(objective=objective)
    together, apart = groups([5], settings), groups([2, 2, 1], settings)
    train(together, settings)
    train(apart, settings)

    expected = concat_states(together)
    for name, tensor in concat_states(apart).items():
        # Adam divides by the size of a gradient: next to zero, rounding moves a step by a trace.
        torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=5e-5)


def test_a_state_can_be_loaded_into_other_groups() -> None:
    settings = config()
    trained, fresh = groups([5], settings), groups([3, 2], settings)
    train(trained, settings)

    load_states(fresh, concat_states(trained), step=3)

    for name, tensor in concat_states(fresh).items():
        assert torch.equal(tensor, concat_states(trained)[name])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n_heads": 1}, 1),  # never more than there are heads
        ({"n_heads": 16, "n_clusters": 25_000, "batch_size": 512}, 7),
        ({"n_heads": 50, "n_clusters": 100, "batch_size": 512}, 50),
    ],
)
def test_a_gpu_takes_as_many_heads_as_fit(changes: dict[str, object], expected: int) -> None:
    assert heads_per_group(config(**changes), torch.device("cuda")) == expected


def test_a_cpu_has_two_heads_per_group() -> None:
    assert heads_per_group(config(n_heads=16), CPU) == 2


_MANY_CLUSTERS = """
import resource
import numpy as np
from temi import TrainConfig, Trainer
rng = np.random.default_rng(0)
features = rng.normal(size=(30_000, 32)).astype(np.float32)
neighbors = rng.integers(0, 30_000, size=(30_000, 5))
config = TrainConfig(n_clusters=25_000, n_heads=16, beta=1.0, batch_size=64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = Trainer(features, neighbors, config, device="cpu").run(1)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert np.isfinite(report.loss)
print((peak - before) // 1024)
"""


def test_25000_clusters_with_16_heads_fit_into_16_gb() -> None:
    """Weights, their averages and the teacher are 16 x 256 x 25,000 numbers each: 1.6 GB."""
    done = subprocess.run(
        [sys.executable, "-c", _MANY_CLUSTERS], capture_output=True, text=True, check=True
    )
    megabytes = int(done.stdout)

    assert megabytes < 5_000
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 16 * 1024**2
