"""The trainer of a job, in this process or distributed over several GPUs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from app.core.platform.settings import Settings
from temi.config import TrainConfig
from temi.device import resolve_device
from temi.training.constraints import Constraints
from temi.training.head_partition import max_processes
from temi.training.trainer import Trainer
from worker.context import JobContext
from worker.stages.training_processes import (
    DistributedTrainer,
    TrainingRun,
    distributed_trainer,
)


@contextmanager
def open_trainer(
    context: JobContext,
    features: npt.NDArray[np.float32],
    neighbors: npt.NDArray[np.int64],
    config: TrainConfig,
    constraints: Constraints | None = None,
) -> Iterator[Trainer | DistributedTrainer]:
    """Yields a trainer that runs in as many processes as there are devices and heads for."""
    settings, job = context.runtime.settings, context.job
    processes = count_processes(settings, config)
    if processes == 1:
        with context.computing():  # reads all features to standardize and project them
            trainer = Trainer(
                features, neighbors, config, constraints=constraints, device=settings.device
            )
        yield trainer
        return
    context.log(f"Training in {processes} processes.")
    run = TrainingRun(
        settings=settings,
        features=_file_of(features),
        neighbors=_file_of(neighbors),
        config=config,
        constraints=constraints,
        processes=processes,
        log_fields={"job_id": job.id, "fence": context.fence, "kind": job.kind, "stage": "train"},
    )
    with distributed_trainer(run) as distributed:
        yield distributed


def count_processes(settings: Settings, config: TrainConfig) -> int:
    """Returns TEMI_TRAIN_PROCESSES or the number of GPUs, limited by the number of heads."""
    device = resolve_device(settings.device)
    gpus = torch.cuda.device_count() if device.type == "cuda" else 0
    if device.index is not None:  # the setting names one GPU
        return 1
    wanted = settings.train_processes or max(1, gpus)
    return min(wanted, gpus or wanted, max_processes(config, device))


def _file_of(array: npt.NDArray[Any]) -> str:
    assert isinstance(array, np.memmap)  # `load_array` returns no other
    return str(array.filename)
