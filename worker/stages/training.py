"""The trainer of a job: in this process, or in several if there are devices for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from app.core.platform.settings import Settings
from temi.config import TrainConfig
from temi.device import resolve_device
from temi.training.head_partition import max_processes
from temi.training.trainer import Trainer
from worker.context import JobContext
from worker.stages.training_processes import RankedTrainer, TrainingRun, ranked_trainer


@contextmanager
def open_trainer(
    context: JobContext,
    features: npt.NDArray[np.float32],
    neighbors: npt.NDArray[np.int64],
    config: TrainConfig,
) -> Iterator[Trainer | RankedTrainer]:
    """In as many processes as are of use here."""
    settings, job = context.runtime.settings, context.job
    processes = count_processes(settings, config)
    if processes == 1:
        with context.computing():  # reads all features to standardize and project them
            alone = Trainer(features, neighbors, config, device=settings.device)
        yield alone
        return
    context.log(f"Trains in {processes} processes.")
    run = TrainingRun(
        settings=settings,
        features=_file_of(features),
        neighbors=_file_of(neighbors),
        config=config,
        processes=processes,
        log_fields={"job_id": job.id, "fence": context.fence, "kind": job.kind, "stage": "train"},
    )
    with ranked_trainer(run) as trainer:
        yield trainer


def count_processes(settings: Settings, config: TrainConfig) -> int:
    """As many as the setting says, or one a GPU, if there are heads for all of them."""
    device = resolve_device(settings.device)
    gpus = torch.cuda.device_count() if device.type == "cuda" else 0
    if device.index is not None:  # this one and no other
        return 1
    wanted = settings.train_processes or max(1, gpus)
    return min(wanted, gpus or wanted, max_processes(config, device))


def _file_of(array: npt.NDArray[Any]) -> str:
    assert isinstance(array, np.memmap)  # as every stored array is
    return str(array.filename)
