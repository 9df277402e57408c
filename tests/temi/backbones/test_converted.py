"""A converted backbone computes the same bits without torch, and a damaged one is never used."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from temi.backbones import converted as converted_module
from temi.backbones.base import Backbone
from temi.backbones.converted import ConvertedBackbone, ConvertedBackbones, file_sha256
from temi.backbones.opening import open_backbone
from temi.backbones.preprocessing import Pixels
from temi.errors import UnknownBackbone, WeightsUnavailable
from tests.worker.tiny import tiny_backbone

_ALONE = """
import sys
from pathlib import Path
import numpy as np
from temi.backbones.converted import ConvertedBackbones
from temi.backbones.opening import open_backbone

backbone = open_backbone(
    "efficientnet_lite0", weights_dir=None, converted=ConvertedBackbones(Path(sys.argv[1]))
)
np.save(sys.argv[3], backbone.embed(np.load(sys.argv[2])))
assert "torch" not in sys.modules
"""


class _Unexportable(nn.Module):
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.asarray(batch.detach()).mean(axis=(2, 3)))


def pixels(size: int, count: int = 3) -> Pixels:
    return np.random.default_rng(0).integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def stored(folder: Path, seed: int = 0) -> tuple[ConvertedBackbones, Backbone]:
    backbones, backbone = ConvertedBackbones(folder), tiny_backbone(seed)
    backbones.add(backbone)
    return backbones, backbone


def test_the_converted_backbone_is_the_same(tmp_path: Path) -> None:
    backbones, backbone = stored(tmp_path)

    found = backbones.load("tiny", backbone.weights_hash)

    assert found is not None
    for name in ("name", "weights_hash", "preprocessing", "precision", "dim", "device_type"):
        assert getattr(found, name) == getattr(backbone, name)
    assert found.backend.name == backbone.backend.name == "onnx"
    assert found.bytes > 0
    np.testing.assert_array_equal(found.embed(pixels(8)), backbone.embed(pixels(8)))
    np.testing.assert_array_equal(found.embed(pixels(8), 3), backbone.embed(pixels(8)))


def test_other_weights_and_names_have_graphs_of_their_own(tmp_path: Path) -> None:
    backbones, backbone = stored(tmp_path)

    assert not backbones.has("tiny", tiny_backbone(seed=1).weights_hash)
    assert not backbones.has("other", backbone.weights_hash)
    assert backbones.load("other", backbone.weights_hash) is None


def test_another_version_of_a_package_converts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbones, backbone = stored(tmp_path)
    monkeypatch.setattr(converted_module, "_versions", lambda: ["9.9"])

    assert not backbones.has("tiny", backbone.weights_hash)


def test_a_backbone_that_only_torch_computes_is_known(tmp_path: Path) -> None:
    backbone = tiny_backbone()
    backbone.fast, backbone.module = _Unexportable(), _Unexportable()
    backbones = ConvertedBackbones(tmp_path)

    backbones.add(backbone)

    assert backbone.backend.name == "torch"
    assert backbones.has("tiny", backbone.weights_hash)
    assert backbones.load("tiny", backbone.weights_hash) is None


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [_flip, _truncate, Path.unlink])
@pytest.mark.parametrize("suffix", ["onnx", "json"])
def test_damage_is_found_and_repaired(
    tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    backbones, backbone = stored(tmp_path)
    (path,) = tmp_path.glob(f"*.{suffix}")
    damage(path)

    found = backbones.load("tiny", backbone.weights_hash)
    if found is not None:  # a flipped bit may hit a blank of the description
        np.testing.assert_array_equal(found.embed(pixels(8)), backbone.embed(pixels(8)))
    else:
        assert not backbones.has("tiny", backbone.weights_hash)

    backbones.add(backbone)
    assert backbones.load("tiny", backbone.weights_hash) is not None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    backbones, backbone = stored(tmp_path / "file" / "onnx")

    assert backbones.load("tiny", backbone.weights_hash) is None
    backbones.note_file("tiny", "0" * 64, backbone.weights_hash)
    assert backbones.hash_of_file("tiny", "0" * 64) is None


def test_the_least_recently_used_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converted_module, "_MAX_GRAPHS", 2)
    backbones, first = stored(tmp_path)
    _, second = stored(tmp_path, seed=1)
    for path in tmp_path.glob("*.json"):
        os.utime(path, (0, 0))
    assert backbones.load("tiny", first.weights_hash) is not None

    stored(tmp_path, seed=2)

    assert backbones.has("tiny", first.weights_hash)
    assert not backbones.has("tiny", second.weights_hash)
    assert len(list(tmp_path.glob("*.onnx"))) == 2


def test_a_process_without_torch_computes_the_same_bits(tmp_path: Path) -> None:
    backbones, given, out = tmp_path / "onnx", tmp_path / "given.npy", tmp_path / "out.npy"
    opened = ConvertedBackbones(backbones)
    first = open_backbone("efficientnet_lite0", weights_dir=None, converted=opened)
    second = open_backbone("efficientnet_lite0", weights_dir=None, converted=opened)
    np.save(given, pixels(224, 2))

    subprocess.run([sys.executable, "-c", _ALONE, backbones, given, out], check=True)

    assert isinstance(first, Backbone)
    assert isinstance(second, ConvertedBackbone)
    np.testing.assert_array_equal(np.load(out), first.embed(pixels(224, 2)))


def test_a_replaced_weights_file_is_loaded_again(tmp_path: Path) -> None:
    name, opened = "timm:test_efficientnet", ConvertedBackbones(tmp_path / "onnx")
    hashes = []
    for seed in (0, 1):
        file = _write_weights(tmp_path, seed)
        backbone = open_backbone(name, weights_dir=tmp_path, converted=opened)
        assert isinstance(backbone, Backbone)
        assert opened.hash_of_file(name, file_sha256(file)) == backbone.weights_hash
        hashes.append(backbone.weights_hash)

    assert hashes[0] != hashes[1]
    _write_weights(tmp_path, 0)
    again = open_backbone(name, weights_dir=tmp_path, converted=opened)
    assert isinstance(again, ConvertedBackbone)
    assert again.weights_hash == hashes[0]


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    opened = ConvertedBackbones(tmp_path)
    with pytest.raises(UnknownBackbone):
        open_backbone("nothing", weights_dir=None, converted=opened)
    with pytest.raises(WeightsUnavailable):
        open_backbone("msn_vits16", weights_dir=tmp_path, converted=opened)


def _write_weights(folder: Path, seed: int) -> Path:
    import timm

    torch.manual_seed(seed)
    module: nn.Module = timm.create_model("test_efficientnet", pretrained=False)
    file = folder / "test_efficientnet.pth"
    torch.save(module.state_dict(), file)
    return file
