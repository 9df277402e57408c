import numpy as np
import pytest
import torch

from temi import bench
from temi.bench import Figure, best_rate, matrix_peak, train_gflop, train_rate
from temi.config import TrainConfig

CPU = torch.device("cpu")


def test_gflop_of_a_step_are_those_of_its_products() -> None:
    """Counted by hand for one head: (3 x 8 x 4 + 4 x 4 x 2 + 4 x 2 x 3) x 2 x 10 rows."""
    config = TrainConfig(n_clusters=3, n_heads=1, hidden_dim=4, bottleneck_dim=2, batch_size=5)

    assert train_gflop(config, dim=8) == pytest.approx(2e-9 * 10 * (96 + 32 + 24))


def test_the_best_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    durations = iter([0.5, 8.0, 2.0, 4.0])  # the first is not measured
    clock = [0.0]
    monkeypatch.setattr("temi.bench.time.perf_counter", lambda: clock[0])

    def work() -> None:
        clock[0] += next(durations)

    assert best_rate(work, 6.0, repeats=3) == 3.0


def test_rates_are_measured() -> None:
    peak = matrix_peak(torch.float32, CPU, size=256)
    config = TrainConfig(n_clusters=3, n_heads=2, batch_size=32, projection_dim=None)
    rate = train_rate(config, dim=64, device="cpu", steps=1)

    # the same unit: each is measured while the machine is busy with something else
    assert 0 < rate < 50 * max(peak, matrix_peak(torch.float32, CPU, size=1024))


def test_the_table_has_the_limits_and_every_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "train_rate", lambda *_: 7.0)
    monkeypatch.setattr(bench, "mine_neighbors", lambda features, k, method: np.zeros(1))

    figures = list(bench.bench("cpu"))

    assert all(isinstance(figure, Figure) and figure.rate > 0 for figure in figures)
    first_words = [figure.what.split(",")[0] for figure in figures]
    assert first_words == [
        *["matrix product"] * 2,
        "JPEG decode",
        "backbone forward",
        "embed",
        "mine",
        *["train"] * 2,
        "predict",
    ]
    embed = figures[4]
    assert embed.share == pytest.approx(embed.rate / figures[3].rate)
    assert [figure.share is None for figure in figures] == [True] * 4 + [False] * 5
