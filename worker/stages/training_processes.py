"""Distributed training on all devices of this machine: a process each; this one has rank 0.

Only rank 0 knows the job. It sends its calls to the other processes, which end with it. If one of
them dies, rank 0 exits too: the attempt counts as crashed, and the job resumes from its checkpoint.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection as pipes
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from app.core.platform.logs import bind_process, configure_logging
from app.core.platform.processes import die_with_parent
from app.core.platform.settings import Settings
from temi.config import TrainConfig
from temi.device import resolve_device
from temi.errors import TemiError
from temi.model import ClusterModel
from temi.training.constraints import Constraints
from temi.training.process_group import TorchProcessGroup
from temi.training.trainer import Trainer, TrainReport

_HOST = "127.0.0.1"
_GRACE_SECONDS = 10.0
log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """What every process needs. Arrays are passed as paths, to be memory-mapped."""

    settings: Settings
    features: str
    neighbors: str
    config: TrainConfig
    processes: int
    log_fields: Mapping[str, Any]
    constraints: Constraints | None = None

    def trainer(self, rank: int, store: TCPStore) -> Trainer:
        device = resolve_device(self.settings.device)
        if device.type == "cuda":
            device = torch.device("cuda", rank)
            torch.cuda.set_device(device)
        else:
            torch.set_num_threads(max(1, self.settings.threads // self.processes))
        # All processes are on this machine, whatever its name resolves to.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=self.processes)
        features, neighbors = (np.load(f, mmap_mode="r") for f in (self.features, self.neighbors))
        return Trainer(
            features,
            neighbors,
            self.config,
            constraints=self.constraints,
            device=str(device),
            process_group=TorchProcessGroup(),
        )


@contextmanager
def distributed_trainer(run: TrainingRun) -> Iterator["DistributedTrainer"]:
    threads = torch.get_num_threads()
    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
    others = _start_processes(run, store.port)
    try:
        with others.waiting_for_crash():
            trainer = run.trainer(0, store)
        yield DistributedTrainer(trainer, others)
    except BaseException:
        others.kill()
        raise
    finally:
        others.stop()
        if dist.is_initialized():
            dist.destroy_process_group()
        others.join()
        torch.set_num_threads(threads)


class DistributedTrainer:
    """A trainer whose calls are made by all processes."""

    def __init__(self, trainer: Trainer, others: "OtherProcesses") -> None:
        self._trainer = trainer
        self._others = others
        self.total_steps = trainer.total_steps

    @property
    def step(self) -> int:
        return self._trainer.step

    @property
    def done(self) -> bool:
        return self._trainer.done

    def run(self, n_steps: int) -> TrainReport:
        with self._others.calling("run", n_steps):
            return self._trainer.run(n_steps)

    def report(self) -> TrainReport:
        with self._others.calling("report"):
            return self._trainer.report()

    def finish(self) -> ClusterModel:
        with self._others.calling("finish"):
            return self._trainer.finish()

    def model(self, head: int) -> ClusterModel:
        with self._others.calling("model", head):
            return self._trainer.model(head)

    @property
    def agreement(self) -> float | None:
        return self._trainer.agreement

    def head_probabilities(
        self, head: int, ids: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.float32]:
        with self._others.calling("head_probabilities", head, ids):
            return self._trainer.head_probabilities(head, ids)

    def state(self) -> dict[str, Tensor]:
        with self._others.calling("state"):
            return self._trainer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        with self._others.calling("load_state", {}):
            self._trainer.load_state(state)


class OtherProcesses:
    """The processes with the ranks from 1, seen from rank 0."""

    def __init__(self, processes: list[BaseProcess], connections: list[Connection]) -> None:
        self._processes = processes
        self._connections = connections
        self._stopping = threading.Event()
        # A collective call waits for a dead process without end, so a thread watches them.
        self._watcher = threading.Thread(target=self._watch, name="training-processes", daemon=True)
        self._watcher.start()

    @contextmanager
    def calling(self, method: str, *args: Any) -> Iterator[None]:
        """Sends a call to the others; the block makes the same call here."""
        with self.waiting_for_crash():
            for connection in self._connections:
                connection.send((method, args))
            yield

    @contextmanager
    def waiting_for_crash(self) -> Iterator[None]:
        """Delays an error of the block: most likely one of the others died, and then `_watch` ends
        this process as crashed."""
        try:
            yield
        except (RuntimeError, OSError):
            self._watcher.join(_GRACE_SECONDS)
            raise

    def stop(self) -> None:
        """Closes the pipes: the others end after their current call."""
        self._stopping.set()
        for connection in self._connections:
            connection.close()

    def kill(self) -> None:
        self._stopping.set()
        for process in self._processes:
            process.kill()

    def join(self) -> None:
        for process in self._processes:
            process.join()
        self._watcher.join()

    def _watch(self) -> None:
        watched = {process.sentinel: process for process in self._processes}
        ended = pipes.wait(watched)
        if not self._stopping.is_set():
            process = next(process for handle, process in watched.items() if handle in ended)
            process.join()
            log.error("training_process_died", rank=process.name, exit_code=process.exitcode)
            os._exit(1)


def _start_processes(run: TrainingRun, port: int) -> OtherProcesses:
    context = get_context("spawn")  # CUDA does not survive a fork
    processes: list[BaseProcess] = []
    connections: list[Connection] = []
    for rank in range(1, run.processes):
        theirs, ours = context.Pipe(duplex=False)
        arguments = (run, rank, port, theirs, os.getpid())
        process = context.Process(target=run_rank, args=arguments, name=f"temi-rank-{rank}")
        process.start()
        theirs.close()
        processes.append(process)
        connections.append(ours)
    return OtherProcesses(processes, connections)


def run_rank(
    run: TrainingRun, rank: int, port: int, connection: Connection, parent_pid: int
) -> None:
    """The main function of the processes with the ranks from 1."""
    die_with_parent(parent_pid)
    configure_logging(run.settings)
    bind_process(**{**run.log_fields, "rank": rank, "pid": os.getpid()})
    try:
        _make_calls(run, rank, port, connection)
    except TemiError:
        connection.poll(None)  # rank 0 raises the same error and reports it
    except Exception:
        log.critical("uncaught_exception", exc_info=True)
        os._exit(1)


def _make_calls(run: TrainingRun, rank: int, port: int, connection: Connection) -> None:
    trainer = run.trainer(rank, TCPStore(_HOST, port, is_master=False))
    while True:
        try:
            method, args = connection.recv()
        except EOFError:
            dist.destroy_process_group()
            return
        getattr(trainer, method)(*args)
