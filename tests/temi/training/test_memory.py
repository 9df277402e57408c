"""The memory estimate against real processes, and for settings that no worker can train."""

from typing import Any

import pytest

from benchmarks.training_memory import config_of, measure
from temi.config import TrainConfig
from temi.training.memory import RESIDENT_BYTES, estimate_memory

GIB = 1 << 30


def total(n_images: int = 100_000, dim: int = 1280, **settings: Any) -> int:
    config = TrainConfig(**({"n_clusters": 100} | settings))
    return estimate_memory(config, n_images, dim).total


@pytest.mark.parametrize(
    "case",
    [
        {"n_images": 2_000, "dim": 1280, "n_clusters": 10},
        {"n_images": 40_000, "dim": 64, "n_clusters": 100},
        {"n_images": 8_000, "dim": 256, "n_clusters": 8_000, "n_heads": 6},
        {"n_images": 3_000, "dim": 1024, "n_clusters": 100, "recipe": "paper", "steps": 5},
    ],
    ids=["small", "many images", "many clusters", "paper"],
)
def test_a_real_training_uses_about_the_estimated_memory(case: dict[str, Any]) -> None:
    wanted = estimate_memory(config_of(case), case["n_images"], case["dim"]).total
    found = measure(case)
    assert 0.8 * found < wanted < 2 * found


def test_too_many_heads_times_clusters_are_estimated_as_too_large() -> None:
    assert total(n_heads=200, n_clusters=25_000) > 75 * GIB
    assert total(1_000_000, n_heads=16, n_clusters=25_000) < 16 * GIB


@pytest.mark.parametrize(
    "more",
    [
        {"n_heads": 32},
        {"n_clusters": 1_000},
        {"batch_size": 4096},
        {"hidden_dim": 4096},
        {"bottleneck_dim": 4096},
        {"n_images": 1_000_000},
        {"dim": 4096},
        {"projection_dim": None},
    ],
)
def test_larger_settings_need_more_memory(more: dict[str, Any]) -> None:
    assert total(**more) > total()


def test_rows_beyond_a_fixed_size_are_not_kept() -> None:
    kept = RESIDENT_BYTES // (4 * 128)
    assert total(kept + 1) < total(kept)
