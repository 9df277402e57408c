"""What the process of a job loads before it starts: each of these takes up to two seconds."""

import subprocess
import sys

import pytest

from worker.jobs import ENTRIES

_LARGE = ("torch", "timm", "torchvision", "torch._dynamo", "sklearn", "openTSNE", "matplotlib")
_SERVICE = ("celery", "fastapi", "alembic", "psycopg")
_CHECK = """
import pkgutil, sys
import {process}
pkgutil.resolve_name({entry!r})
print([name for name in {names} if name in sys.modules])
"""


def _loaded(process: str, entry: str) -> list[str]:
    code = _CHECK.format(process=process, entry=entry, names=(*_LARGE, *_SERVICE))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [name.strip("'") for name in done.stdout.strip()[1:-1].split(", ") if name]


@pytest.mark.parametrize("kind", ["ingest", "export", "predict", "map"])
def test_jobs_without_training_do_not_load_torch(kind: str) -> None:
    assert _loaded("worker.supervision.job_process", ENTRIES[kind]) == []


def test_training_loads_only_torch() -> None:
    assert _loaded("worker.supervision.job_process", ENTRIES["cluster"]) == ["torch"]


@pytest.mark.parametrize(
    "prepare",
    [
        "worker.stages.embedding_shards:prepare_embed_shard",
        "worker.stages.neighbor_shards:prepare_mine_shard",
    ],
)
def test_helpers_do_not_load_torch(prepare: str) -> None:
    loaded = _loaded("worker.stages.sharded_stage", prepare)
    assert [name for name in loaded if name in _LARGE] == []


def test_a_training_step_does_not_load_the_compiler_of_torch() -> None:
    code = """
import sys
import torch
from temi.training.heads import Heads
from temi.training.optimizer import RestorableAdamW

heads = Heads(n_heads=1, dim=2, hidden_dim=2, bottleneck_dim=2, n_clusters=2)
optimizer = RestorableAdamW(heads, [(heads.decayed(), 0.1), (heads.undecayed(), 0.0)])
torch.autograd.backward(heads(torch.ones(1, 2)).sum())
optimizer.step(0.1, 0.1)
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
