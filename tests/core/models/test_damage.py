"""Damaged model files (a thousand flipped bits, and more) are not loaded."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
from safetensors import SafetensorError

from app.core.models.files import ModelFiles, load_model
from app.core.platform.errors import ModelIntegrity
from app.core.runtime import Runtime
from temi.backbones.base import Backbone
from temi.finetune import backbone_tensors
from tests.model_files import small_files, small_manifest, write_files
from tests.worker.tiny import tiny_backbone

FOLDER = "models/job_1"
FLIPS = 1000
NAMES = ("backbone.safetensors", "manifest.json", "model.safetensors")


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    """A version with a fine-tuned backbone, which has all kinds of files."""
    backbone = tiny_backbone(seed=1)
    manifest = small_manifest(3, backbone="tiny", weights_sha256=backbone.weights_hash)
    tuned = safetensors.torch.save(backbone_tensors(backbone))
    return {**small_files(manifest), "backbone.safetensors": tuned}


@pytest.fixture
def files(runtime: Runtime, contents: dict[str, bytes]) -> ModelFiles:
    return _registered(runtime, contents)


@pytest.fixture
def no_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage is found before any backbone is loaded."""

    def load(*_: object) -> Backbone:
        raise AssertionError("a backbone was loaded for files that are damaged")

    monkeypatch.setattr("app.core.models.files._load_backbone", load)


def _registered(runtime: Runtime, contents: dict[str, bytes]) -> ModelFiles:
    hashes = write_files(runtime.storage, FOLDER, contents)
    weights = tiny_backbone(seed=1).weights_hash
    manifest = {
        "backbone": "tiny",
        "weights_sha256": weights,
        "precision": "float32",
        "temperature": 0.1,
    }
    return ModelFiles.of(FOLDER, hashes, manifest)


def _path(runtime: Runtime, name: str) -> Path:
    return runtime.storage.path(f"{FOLDER}/{name}")


def test_the_undamaged_version_is_loaded(
    runtime: Runtime, files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.models.files._load_backbone", lambda *_: tiny_backbone(seed=0))
    backbone, model, _ = load_model(files, runtime.settings)
    assert backbone.weights_hash == tiny_backbone(seed=1).weights_hash
    assert model.n_clusters == 3


@pytest.mark.usefixtures("no_backbone")
def test_every_one_of_a_thousand_flipped_bits_is_refused(
    runtime: Runtime, files: ModelFiles, contents: dict[str, bytes]
) -> None:
    random, refused = np.random.default_rng(0), 0
    for number in range(FLIPS):
        name = NAMES[number % len(NAMES)]
        damaged = bytearray(contents[name])
        damaged[random.integers(len(damaged))] ^= 1 << int(random.integers(8))
        _path(runtime, name).write_bytes(damaged)
        with pytest.raises(ModelIntegrity, match=name):
            load_model(files, runtime.settings)
        refused += 1
        _path(runtime, name).write_bytes(contents[name])
    assert refused == FLIPS


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\x00")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _swap(path: Path) -> None:
    other = path.with_name(NAMES[(NAMES.index(path.name) + 1) % len(NAMES)])
    mine, others = path.read_bytes(), other.read_bytes()
    path.write_bytes(others)
    other.write_bytes(mine)


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.usefixtures("no_backbone")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", [_truncate, _append, _empty, _swap, Path.unlink, _make_folder])
def test_other_damage_is_refused(
    runtime: Runtime, files: ModelFiles, name: str, damage: Callable[[Path], None]
) -> None:
    damage(_path(runtime, name))
    with pytest.raises(ModelIntegrity):
        load_model(files, runtime.settings)


class _Trap:
    """Unpickling it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self._path,)


@pytest.mark.usefixtures("own_conversions")
@pytest.mark.parametrize("name", ["model.safetensors", "backbone.safetensors"])
def test_loading_never_unpickles(
    runtime: Runtime,
    contents: dict[str, bytes],
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even a registered file with a valid hash."""
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(_Trap(sprung))
    pickle.loads(trap)
    assert sprung.exists()  # it works
    sprung.unlink()
    monkeypatch.setattr("app.core.models.files._load_backbone", lambda *_: tiny_backbone(seed=0))
    files = _registered(runtime, contents | {name: trap})
    with pytest.raises(SafetensorError):
        load_model(files, runtime.settings)
    assert not sprung.exists()
