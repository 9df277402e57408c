"""Compares the memory estimate of a training run with real processes.

    python -m benchmarks.training_memory

Each configuration trains for a few steps and stores a checkpoint in a separate process, whose
largest anonymous memory is read from the system.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from temi.config import TrainConfig
from temi.training.memory import estimate_memory
from temi.training.trainer import Trainer

_GIB = 1 << 30
_STEPS = 3
_THREADS = 4  # the number of parallel groups in the estimate
CASES: tuple[dict[str, Any], ...] = (
    {"n_images": 5_000, "dim": 1280, "n_clusters": 10},
    {"n_images": 300_000, "dim": 1280, "n_clusters": 1_000},
    {"n_images": 20_000, "dim": 1280, "n_clusters": 5_000},
    {"n_images": 30_000, "dim": 1280, "n_clusters": 25_000, "n_heads": 4},
    {"n_images": 30_000, "dim": 1280, "n_clusters": 25_000, "n_heads": 8, "objective": "scan"},
    {"n_images": 20_000, "dim": 2048, "n_clusters": 100, "recipe": "paper", "steps": 50},
)


def config_of(case: dict[str, Any]) -> TrainConfig:
    settings = {name: case[name] for name in case if name not in ("n_images", "dim", "recipe")}
    return TrainConfig.for_recipe(case.get("recipe", "default"), **settings)


def measure(case: dict[str, Any]) -> int:
    """Return the peak anonymous memory of a process that trains and saves, in bytes."""
    command = [sys.executable, "-m", "benchmarks.training_memory", json.dumps(case)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.splitlines()[-1])


def train(case: dict[str, Any]) -> int:
    peak = _Peak()
    torch.set_num_threads(_THREADS)
    config = config_of(case)
    with tempfile.TemporaryDirectory() as folder:
        features, neighbors = _arrays(Path(folder), case, config.resolve(case["n_images"]))
        trainer = Trainer(features, neighbors, config, device="cpu")
        trainer.run(_STEPS)
        saved = safetensors.torch.save(trainer.state())
        Path(folder, "checkpoint").write_bytes(saved)
    return peak.stop()


def _arrays(folder: Path, case: dict[str, Any], config: TrainConfig) -> tuple[Any, Any]:
    n, k = case["n_images"], config.n_neighbors or 1
    rng = np.random.default_rng(0)
    features = np.lib.format.open_memmap(folder / "f.npy", "w+", np.float32, (n, case["dim"]))
    neighbors = np.lib.format.open_memmap(folder / "n.npy", "w+", np.int64, (n, k))
    for start in range(0, n, 10_000):
        rows = slice(start, min(start + 10_000, n))
        features[rows] = rng.standard_normal((rows.stop - start, case["dim"]), dtype=np.float32)
        neighbors[rows] = rng.integers(0, n, (rows.stop - start, k))
    return features, neighbors


class _Peak:
    """Measures the memory of this process every few milliseconds, in a thread."""

    def __init__(self) -> None:
        self._largest, self._stopped = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stopped.set()
        self._thread.join()
        return self._largest

    def _look(self) -> None:
        while not self._stopped.is_set():
            status = Path("/proc/self/status").read_text(encoding="ascii")
            line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
            self._largest = max(self._largest, 1024 * int(line.split()[1]))
            time.sleep(0.005)


def main() -> None:
    if len(sys.argv) > 1:
        print(train(json.loads(sys.argv[1])))
        return
    print("| training | estimate (GiB) | measured (GiB) | ratio |\n|---|---|---|---|")
    for case in CASES:
        wanted = estimate_memory(config_of(case), case["n_images"], case["dim"]).total
        found = measure(case)
        what = ", ".join(f"{name} {value}" for name, value in case.items())
        print(f"| {what} | {wanted / _GIB:.2f} | {found / _GIB:.2f} | {wanted / found:.2f} |")


if __name__ == "__main__":
    main()
