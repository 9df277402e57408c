from typing import Any

import pytest

from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.finetune import FinetuneConfig


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("objective", "guess"),
        ("beta", 0.5),
        ("batch_size", None),
        ("batch_size", 0),
        ("pairs_at_once", 1.5),
        ("backbone_learning_rate", -1e-5),
        ("head_learning_rate", float("nan")),
        ("weight_decay", -1),
        ("teacher_momentum", 1.0),
        ("occupancy_momentum", 1.0),
        ("steps", 0),
        ("warmup_steps", -1),
        ("seed", -1),
    ],
)
def test_settings_out_of_range(field: str, value: Any) -> None:
    with pytest.raises(InvalidConfig) as caught:
        FinetuneConfig(**{field: value})
    assert caught.value.field == field


def test_settings_follow_training() -> None:
    trained = TrainConfig(n_clusters=5, objective="pmi", beta=0.7, n_neighbors=9, seed=3)

    config = FinetuneConfig.of(trained, epochs=2, seed=4)

    assert (config.objective, config.beta, config.n_neighbors) == ("pmi", 0.7, 9)
    assert config.seed == 4
    assert config.resolve(320, 5).steps == 2 * 320 // config.batch_size
    assert FinetuneConfig().resolve(320, 5).n_neighbors == 16  # what training would take
    with pytest.raises(InvalidConfig, match="not both"):
        FinetuneConfig(steps=3, epochs=3)
