import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temi.config import TrainConfig
from temi.errors import InvalidConfig


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_clusters", 1),
        ("n_clusters", 2.5),
        ("n_clusters", True),
        ("n_clusters", "3"),
        ("n_heads", 0),
        ("n_neighbors", 0),
        ("batch_size", 0),
        ("steps", 0),
        ("epochs", -1),
        ("warmup_steps", -1),
        ("projection_dim", 0),
        ("hidden_dim", 0),
        ("beta", 0.5),
        ("beta", 1.01),
        ("beta", float("nan")),
        ("beta", "high"),
        ("temperature", 0.0),
        ("learning_rate", 0),
        ("learning_rate", float("inf")),
        ("weight_decay", -1e-9),
        ("teacher_momentum", 1.0),
        ("occupancy_momentum", -0.1),
        ("early_stop", 1),
        ("seed", -1),
        ("seed", 2**63),
    ],
)
def test_errors_name_the_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidConfig) as caught:
        TrainConfig(**({"n_clusters": 5} | {field: value}))
    assert caught.value.field == field
    assert field in str(caught.value)


def test_steps_or_epochs_but_not_both() -> None:
    with pytest.raises(InvalidConfig, match="not both"):
        TrainConfig(n_clusters=3, steps=10, epochs=2)


def test_more_clusters_than_images() -> None:
    with pytest.raises(InvalidConfig) as caught:
        TrainConfig(n_clusters=10).resolve(9)
    assert caught.value.field == "n_clusters"


def test_json_round_trip() -> None:
    config = TrainConfig(n_clusters=7, beta=0.55, n_neighbors=20, projection_dim=None)

    assert TrainConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config


def test_from_dict_refuses_unknown_and_missing_fields() -> None:
    with pytest.raises(InvalidConfig) as caught:
        TrainConfig.from_dict({"n_clusters": 3, "color": "red"})
    assert caught.value.field == "color"
    with pytest.raises(InvalidConfig, match="required"):
        TrainConfig.from_dict({"beta": 0.6})


def test_the_papers_recipe() -> None:
    config = TrainConfig.paper(n_clusters=10).resolve(50_000)

    assert (config.n_heads, config.n_neighbors, config.batch_size) == (50, 50, 512)
    assert config.steps == 19532  # 200 epochs
    assert (config.learning_rate, config.teacher_momentum) == (1e-4, 0.996)
    assert (config.projection_dim, config.n_teams) == (None, 1)
    assert not config.early_stop


def test_the_papers_recipe_can_be_changed() -> None:
    config = TrainConfig.paper(n_clusters=10, steps=30, n_heads=2).resolve(100)

    assert (config.steps, config.n_heads, config.epochs) == (30, 2, None)


@given(n_images=st.integers(2, 10**7), n_clusters=st.integers(2, 1000))
def test_resolved_settings_are_usable(n_images: int, n_clusters: int) -> None:
    if n_clusters > n_images:
        return
    config = TrainConfig(n_clusters=n_clusters).resolve(n_images)

    assert config.n_neighbors is not None
    assert config.steps is not None
    assert config.warmup_steps is not None
    assert 1 <= config.n_neighbors <= min(200, n_images - 1)
    assert config.warmup_steps <= config.steps / 10
    assert config.resolve(n_images) == config


def test_given_settings_are_kept() -> None:
    config = TrainConfig(
        n_clusters=3,
        n_teams=4,
        n_neighbors=7,
        batch_size=20,
        steps=55,
        warmup_steps=3,
        teacher_momentum=0.5,
        smoothing=False,
        select="lowest_loss",
        beta=0.7,
        hidden_dim=30,
        bottleneck_dim=20,
    )

    assert config.resolve(1000) == config


@pytest.mark.parametrize(
    ("n_images", "settings", "beta"),
    [
        (199, {}, 0.85),  # fewer than 20 images in an average cluster
        (200, {}, 0.6),
        (199, {"beta": 0.7}, 0.7),
        (199, {"select": "lowest_loss"}, 0.6),  # as in the paper
        (2000, {"n_clusters": 1001}, 0.6),  # too many for a consensus
    ],
)
def test_clusters_are_less_balanced_if_they_are_small(
    n_images: int, settings: dict[str, Any], beta: float
) -> None:
    assert TrainConfig(**({"n_clusters": 10} | settings)).resolve(n_images).beta == beta
    assert TrainConfig.paper(n_clusters=10).resolve(n_images).beta == 0.6


@pytest.mark.parametrize(
    ("settings", "n_teams"),
    [
        ({}, 2),
        ({"n_heads": 5}, 1),
        ({"n_heads": 24}, 3),
        ({"n_heads": 2, "n_teams": 3}, 2),  # never more than there are heads
        ({"select": "lowest_loss"}, 1),  # as in the paper, all heads share the weights of pairs
    ],
)
def test_heads_train_in_teams_of_eight(settings: dict[str, Any], n_teams: int) -> None:
    assert TrainConfig(n_clusters=3, **settings).resolve(1000).n_teams == n_teams
