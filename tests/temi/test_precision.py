from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

from temi.analysis.metrics import evaluate
from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.neighbors.search import mine_neighbors
from temi.precision import autocast_to, fast_precisions, matrix_dtype
from temi.training.trainer import Trainer

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]
CPU = torch.device("cpu")


def test_the_set_precision_is_used() -> None:
    assert matrix_dtype("float32") == torch.float32
    assert matrix_dtype("bfloat16") == torch.bfloat16
    with pytest.raises(InvalidConfig, match="precision"):
        matrix_dtype("auto")


@pytest.mark.parametrize(
    ("amx", "avx512", "expected"),
    [
        (False, False, ("float32",)),
        (True, False, ("float32", "bfloat16")),
        (False, True, ("float32", "bfloat16")),
    ],
)
def test_the_processor_does_not_determine_the_precision(
    monkeypatch: pytest.MonkeyPatch, amx: bool, avx512: bool, expected: tuple[str, ...]
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)

    assert fast_precisions(CPU) == expected
    assert TrainConfig(n_clusters=2).precision == "float32"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_have_the_dtype(dtype: torch.dtype) -> None:
    with autocast_to(dtype, CPU):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


def test_training_in_bfloat16_finds_the_same_groups(mixture: Mixture) -> None:
    features, labels = mixture(200, n_groups=4)
    neighbors = mine_neighbors(features, 10).ids
    accuracies, weights = {}, {}
    for precision in ("float32", "bfloat16"):
        config = TrainConfig(
            n_clusters=4,
            n_heads=2,
            hidden_dim=32,
            bottleneck_dim=16,
            batch_size=64,
            steps=200,
            precision=precision,
        )
        trainer = Trainer(features, neighbors, config, device="cpu")
        trainer.run(200)
        accuracies[precision] = evaluate(
            labels.tolist(), trainer.finish().predict(features)
        ).accuracy
        weights[precision] = trainer.state()["heads.student.w1"]

    assert accuracies["float32"] == pytest.approx(accuracies["bfloat16"], abs=0.02)
    assert weights["bfloat16"].dtype == torch.float32  # only products are rounded
    assert not torch.equal(weights["float32"], weights["bfloat16"])
