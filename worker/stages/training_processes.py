"""Training on all devices of this machine: a process each, and this one is the first of them.

Only this process knows of the job. The others make the calls that it tells them to make, and end
with it, however it ends. If one of them dies, this process dies too: that is a crash like any
other, and the job goes on from its checkpoint.
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
from temi.training.process_group import TorchProcessGroup
from temi.training.trainer import Trainer, TrainReport

_HOST = "127.0.0.1"
_GRACE_SECONDS = 10.0
log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """What every process needs to know. Arrays are named by their files, not copied."""

    settings: Settings
    features: str
    neighbors: str
    config: TrainConfig
    processes: int
    log_fields: Mapping[str, Any]

    def trainer(self, rank: int, store: TCPStore) -> Trainer:
        device = resolve_device(self.settings.device)
        if device.type == "cuda":
            device = torch.device("cuda", rank)
            torch.cuda.set_device(device)
        else:
            torch.set_num_threads(max(1, self.settings.threads // self.processes))
        # All are on this machine, whatever its name may resolve to.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=self.processes)
        features, neighbors = (np.load(f, mmap_mode="r") for f in (self.features, self.neighbors))
        return Trainer(
            features, neighbors, self.config, device=str(device), process_group=TorchProcessGroup()
        )


@contextmanager
def ranked_trainer(run: TrainingRun) -> Iterator["RankedTrainer"]:
    threads = torch.get_num_threads()
    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
    followers = _start_followers(run, store.port)
    try:
        with followers.needed():
            trainer = run.trainer(0, store)
        yield RankedTrainer(trainer, followers)
    except BaseException:
        followers.kill()
        raise
    finally:
        followers.dismiss()
        if dist.is_initialized():
            dist.destroy_process_group()
        followers.join()
        torch.set_num_threads(threads)


class RankedTrainer:
    """A trainer whose every call is made by all processes."""

    def __init__(self, trainer: Trainer, followers: "Followers") -> None:
        self._trainer = trainer
        self._followers = followers
        self.total_steps = trainer.total_steps

    @property
    def step(self) -> int:
        return self._trainer.step

    @property
    def done(self) -> bool:
        return self._trainer.done

    def run(self, n_steps: int) -> TrainReport:
        with self._followers.calling("run", n_steps):
            return self._trainer.run(n_steps)

    def report(self) -> TrainReport:
        with self._followers.calling("report"):
            return self._trainer.report()

    def finish(self) -> ClusterModel:
        with self._followers.calling("finish"):
            return self._trainer.finish()

    def model(self, head: int) -> ClusterModel:
        with self._followers.calling("model", head):
            return self._trainer.model(head)

    def state(self) -> dict[str, Tensor]:
        with self._followers.calling("state"):
            return self._trainer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        with self._followers.calling("load_state", {}):
            self._trainer.load_state(state)


class Followers:
    """The other processes, seen from the first."""

    def __init__(self, processes: list[BaseProcess], connections: list[Connection]) -> None:
        self._processes = processes
        self._connections = connections
        self._dismissed = threading.Event()
        # A collective call may wait for a dead process for ever, so a thread looks after them.
        self._guard = threading.Thread(target=self._watch, name="ranks", daemon=True)
        self._guard.start()

    @contextmanager
    def calling(self, method: str, *args: Any) -> Iterator[None]:
        """The others make this call while the block makes it here."""
        with self.needed():
            for connection in self._connections:
                connection.send((method, args))
            yield

    @contextmanager
    def needed(self) -> Iterator[None]:
        """What fails in the block most likely does so because one of them died: then this process
        is about to die, and nothing else is to be told of it."""
        try:
            yield
        except (RuntimeError, OSError):
            self._guard.join(_GRACE_SECONDS)
            raise

    def dismiss(self) -> None:
        """They end after the call that they are in, if any."""
        self._dismissed.set()
        for connection in self._connections:
            connection.close()

    def kill(self) -> None:
        self._dismissed.set()
        for process in self._processes:
            process.kill()

    def join(self) -> None:
        for process in self._processes:
            process.join()
        self._guard.join()

    def _watch(self) -> None:
        watched = {process.sentinel: process for process in self._processes}
        ended = pipes.wait(watched)
        if not self._dismissed.is_set():
            process = next(process for handle, process in watched.items() if handle in ended)
            process.join()
            log.error("rank_died", rank=process.name, exit_code=process.exitcode)
            os._exit(1)


def _start_followers(run: TrainingRun, port: int) -> Followers:
    context = get_context("spawn")  # CUDA does not survive a fork
    processes: list[BaseProcess] = []
    connections: list[Connection] = []
    for rank in range(1, run.processes):
        theirs, ours = context.Pipe(duplex=False)
        arguments = (run, rank, port, theirs, os.getpid())
        process = context.Process(target=follow, args=arguments, name=f"temi-rank-{rank}")
        process.start()
        theirs.close()
        processes.append(process)
        connections.append(ours)
    return Followers(processes, connections)


def follow(run: TrainingRun, rank: int, port: int, connection: Connection, parent_pid: int) -> None:
    """The life of every process but the first."""
    die_with_parent(parent_pid)
    configure_logging(run.settings)
    bind_process(**{**run.log_fields, "rank": rank, "pid": os.getpid()})
    try:
        _follow(run, rank, port, connection)
    except TemiError:
        connection.poll(None)  # the first process finds the same and says it
    except Exception:
        log.critical("uncaught_exception", exc_info=True)
        os._exit(1)


def _follow(run: TrainingRun, rank: int, port: int, connection: Connection) -> None:
    trainer = run.trainer(rank, TCPStore(_HOST, port, is_master=False))
    while True:
        try:
            method, args = connection.recv()
        except EOFError:
            dist.destroy_process_group()
            return
        getattr(trainer, method)(*args)
