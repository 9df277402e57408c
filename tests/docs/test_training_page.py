"""The page on several devices: its program runs, and its figures follow from the code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.head_partition import HeadPartition, max_processes
from temi.training.trainer import Trainer
from tests.servers import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text("utf-8")
ROWS = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) heads .* \| ([\d,]+) \|$", PAGE, re.M)


def test_the_program_finds_what_one_process_finds(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(10, 16))
    features = (centers[np.arange(300) % 10] + 0.2 * rng.normal(size=(300, 16))).astype(np.float32)
    config = TrainConfig(n_clusters=10, steps=60).resolve(300)
    assert config.n_neighbors is not None
    neighbors = mine_neighbors(features, config.n_neighbors).ids
    np.save(tmp_path / "features.npy", features)
    np.save(tmp_path / "neighbors.npy", neighbors)
    settings = "TrainConfig(n_clusters=10"
    assert program.count(settings) == 1
    (tmp_path / "train.py").write_text(program.replace(settings, f"{settings}, steps=60"))

    # `--standalone`, with a port of which no other connection of this machine can be in the way
    meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    launch = ["-m", "torch.distributed.run", *meeting, "--nproc-per-node=2", "train.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, *launch], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    alone = Trainer(features, neighbors, config, device="cpu")
    alone.run(60)
    expected = alone.finish().predict(features)
    torch.set_num_threads(before)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)
    assert len(np.unique(expected)) > 3


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-heads-{row[2]}-processes")
def test_bytes_of_a_step(row: tuple[str, ...]) -> None:
    heads, pairs, processes, most, sent = (int(text.replace(",", "")) for text in row)
    config = TrainConfig(n_clusters=10, n_heads=heads, batch_size=pairs)
    device = torch.device("cuda" if processes > 3 else "cpu")
    partition = HeadPartition.of(config, device, rank=0, world_size=processes)
    assert max(partition.heads_per_rank) == most
    assert most * pairs * 4 * (processes - 1) == sent


def test_how_far_heads_are_shared_out() -> None:
    assert len(ROWS) == 3
    most = max_processes(TrainConfig(n_clusters=10, batch_size=8), torch.device("cpu"))
    assert f"16 heads go to at most {most} processes" in " ".join(PAGE.split())
