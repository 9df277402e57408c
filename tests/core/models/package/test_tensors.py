"""Safetensors are checked without torch, as strictly as torch would."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from app.core.models.package.manifest import parse_manifest
from app.core.models.package.tensors import _hash_weights, check_head
from app.core.platform.errors import ModelFileInvalid
from temi.backbones.base import hash_tensors
from tests.model_files import DIM, small_head, small_manifest
from tests.worker.tiny import tiny_backbone

MANIFEST = parse_manifest(json.dumps(small_manifest(3)).encode())[0]


def _check(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    check_head(path, MANIFEST)


def test_a_valid_head(tmp_path: Path) -> None:
    _check(tmp_path, safetensors.numpy.save(small_head(3)))


@pytest.mark.parametrize(
    "change",
    [
        {"extra": np.zeros(1, np.float32)},
        {"mean": np.zeros((DIM, 1), np.float32)},
        {"w3": np.zeros((3, 4), np.float32)},
        {"w1": np.zeros((DIM, 5), np.float32)},
        {"b1": np.zeros((), np.float32)},
        {"w2": np.zeros((4, 3), np.float64)},
        {"b2": np.full(3, np.nan, np.float32)},
        {"w2": np.full((4, 3), np.inf, np.float32)},
        {"std": np.zeros(DIM, np.float32)},
    ],
)
def test_heads_that_do_not_fit(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ModelFileInvalid):
        _check(tmp_path, safetensors.numpy.save(small_head(3) | change))


@pytest.mark.parametrize("name", small_head(3))
def test_a_missing_tensor(tmp_path: Path, name: str) -> None:
    head = small_head(3)
    del head[name]
    with pytest.raises(ModelFileInvalid, match="do not fit"):
        _check(tmp_path, safetensors.numpy.save(head))


def _header(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 8,
        (2**63).to_bytes(8, "little"),
        _header(b"{}") + b"x",
        _header(b"[1]"),
        _header(b'{"a": 1}'),
        _header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}') + bytes(4),
        _header(b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}') + bytes(4),
        _header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}') + bytes(8),
        _header(b'{"a": {"dtype": "Q9", "shape": [1], "data_offsets": [0, 4]}}') + bytes(4),
        _header(b"[" * 100_000),
        pickle.dumps({"mean": [1.0]}),
    ],
)
def test_other_files_than_safetensors(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelFileInvalid):
        _check(tmp_path, data)


def test_the_weights_hash_equals_that_of_torch(tmp_path: Path) -> None:
    state: dict[str, torch.Tensor] = dict(tiny_backbone().module.state_dict())
    state["half"] = torch.ones(3, 2, dtype=torch.bfloat16)
    state["flag"] = torch.tensor([True, False])
    state["scalar"] = torch.tensor(4)
    state["none"] = torch.zeros(0, 3)
    path = tmp_path / "backbone.safetensors"
    safetensors.torch.save_file(state, path, metadata={"made": "here"})
    assert _hash_weights(path) == hash_tensors(state)


def test_torch_is_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors.numpy.save(small_head(3)))
    (tmp_path / "manifest.json").write_text(json.dumps(small_manifest(3)))
    program = (
        "import sys; from pathlib import Path\n"
        "from app.core.models.package import manifest, tensors, unpacking\n"
        f"path = Path({str(path)!r})\n"
        "found = manifest.parse_manifest((path.parent / 'manifest.json').read_bytes())[0]\n"
        "tensors.check_head(path, found)\n"
        "assert not {'torch', 'sklearn', 'timm'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[4])
