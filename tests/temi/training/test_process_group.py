"""Several processes give bit-identical results to one."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from temi.config import TrainConfig
from temi.model import ClusterModel
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import Trainer
from tests.temi.ranks import run_and_save, train_in

N_HEADS = 7  # not divisible by the numbers of processes below
CONFIG = TrainConfig(
    n_clusters=4,
    n_heads=N_HEADS,
    hidden_dim=32,
    bottleneck_dim=16,
    batch_size=32,
    steps=120,
    projection_dim=8,
    early_stop=False,
)

several = pytest.mark.parametrize("processes", [2, 3])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the same run in one, two and three processes."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(4, 16))
    points = centers[np.arange(200) % 4] + 0.25 * rng.normal(size=(200, 16))
    features = points.astype(np.float32)
    np.save(folder / "features.npy", features)
    np.save(folder / "neighbors.npy", mine_neighbors(features, 10).ids)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    run_and_save(single_process(folder), folder, "1", first=True, stop_at=25)
    for processes in (2, 3):
        train_in(folder, CONFIG, processes)
    torch.set_num_threads(before)
    return folder


def single_process(folder: Path) -> Trainer:
    features, neighbors = np.load(folder / "features.npy"), np.load(folder / "neighbors.npy")
    return Trainer(features, neighbors, CONFIG, device="cpu")


def assert_same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@several
@pytest.mark.parametrize("moment", ["half", "end"])
def test_every_weight_is_bit_identical(runs: Path, processes: int, moment: str) -> None:
    expected = load_file(runs / f"1-{moment}.safetensors")
    assert_same(load_file(runs / f"{processes}-{moment}.safetensors"), expected)


@several
def test_reports_and_labels_are_the_same(runs: Path, processes: int) -> None:
    reports = [json.loads((runs / f"{name}.json").read_text()) for name in (1, processes)]
    assert reports[0] == reports[1]
    assert reports[0]["changed"] is not None  # convergence was checked
    features = np.load(runs / "features.npy")
    for number in range(N_HEADS + 1):
        labels = model(runs, processes, number).predict(features)
        np.testing.assert_array_equal(labels, model(runs, 1, number).predict(features))
    assert len(np.unique(labels)) == 4


def model(runs: Path, name: int, number: int) -> ClusterModel:
    tensors = load_file(runs / f"{name}-model-{number}.safetensors")
    return ClusterModel.from_tensors({key: t.numpy() for key, t in tensors.items()}, 0.1)


@several
def test_a_run_can_be_resumed_with_more_processes(runs: Path, processes: int) -> None:
    resumed = load_file(runs / f"{processes}-resumed.safetensors")
    assert_same(resumed, load_file(runs / "1-end.safetensors"))


@several
def test_a_run_can_be_resumed_with_fewer_processes(runs: Path, processes: int) -> None:
    trainer = single_process(runs)
    trainer.load_state(load_file(runs / f"{processes}-half.safetensors"))
    report = trainer.run(trainer.total_steps)
    assert_same(trainer.state(), load_file(runs / "1-end.safetensors"))
    assert json.loads(json.dumps(asdict(report))) == json.loads((runs / "1.json").read_text())
