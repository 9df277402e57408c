"""Starts training runs of several processes with torch.distributed."""

import json
import multiprocessing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from torch.distributed import FileStore  # type: ignore[attr-defined]

from temi.config import TrainConfig
from temi.training.process_group import ProcessGroup, TorchProcessGroup
from temi.training.trainer import Trainer


def train_in(folder: Path, config: TrainConfig, processes: int) -> None:
    """Train on the features and neighbors in the folder, and store the results there."""
    context = multiprocessing.get_context("spawn")
    ranks = [
        context.Process(target=_rank, args=(folder, config, rank, processes))
        for rank in range(processes)
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0] * processes


def run_and_save(trainer: Trainer, folder: Path, name: str, *, first: bool, stop_at: int) -> None:
    trainer.run(stop_at)
    _save(trainer.state(), folder / f"{name}-half.safetensors", first)
    report = trainer.run(trainer.total_steps)
    _save(trainer.state(), folder / f"{name}-end.safetensors", first)
    models = [trainer.model(head).tensors() for head in range(trainer.config.n_heads)]
    models.append(trainer.finish().tensors())
    if first:
        (folder / f"{name}.json").write_text(json.dumps(asdict(report)))
        for number, tensors in enumerate(models):
            save_arrays(tensors, folder / f"{name}-model-{number}.safetensors")


def _rank(folder: Path, config: TrainConfig, rank: int, processes: int) -> None:
    torch.set_num_threads(1)
    store = FileStore(str(folder / f"store-{processes}"), processes)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=processes)
    group, first = TorchProcessGroup(), rank == 0
    run_and_save(_new(folder, config, group), folder, str(processes), first=first, stop_at=25)

    resumed = _new(folder, config, group)
    resumed.load_state(load_file(folder / "1-half.safetensors") if first else {})
    resumed.run(resumed.total_steps)
    _save(resumed.state(), folder / f"{processes}-resumed.safetensors", first)
    dist.destroy_process_group()


def _new(folder: Path, config: TrainConfig, group: ProcessGroup) -> Trainer:
    features, neighbors = np.load(folder / "features.npy"), np.load(folder / "neighbors.npy")
    return Trainer(features, neighbors, config, device="cpu", process_group=group)


def _save(state: dict[str, torch.Tensor], path: Path, first: bool) -> None:
    assert bool(state) == first
    if first:
        save_file(state, path)
