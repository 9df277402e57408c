"""A version is packed into one file and unpacked unchanged."""

import io
import json
import zipfile
from typing import Any

import pytest

from app.core.models.package import packing
from app.core.models.package.packing import PackedModel
from app.core.models.package.unpacking import unpack
from app.core.platform.errors import ModelIntegrity
from app.core.platform.tables import ModelVersion
from app.core.runtime import Runtime
from temi.calibration import Calibration
from tests.model_files import small_files, small_manifest, write_files

FOLDER = "models/job_1"
CALIBRATION = Calibration(slope=0.5, intercept=-0.25)


def _version(runtime: Runtime, **manifest: Any) -> ModelVersion:
    values = small_manifest(3, **manifest)
    files = write_files(runtime.storage, FOLDER, small_files(values))
    return ModelVersion(version=2, folder=FOLDER, manifest=values, files=files)


def _pack(runtime: Runtime, version: ModelVersion) -> PackedModel:
    return PackedModel(runtime.storage, "cats", version, ["a", "b", "äöü"], CALIBRATION)


def _bytes(packed: PackedModel) -> bytes:
    return b"".join(packed.blocks())


def test_the_file_has_all_members(runtime: Runtime) -> None:
    packed = _pack(runtime, _version(runtime))
    data = _bytes(packed)
    assert packed.filename == "cats-2.temi"
    assert len(data) == packed.size
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "checksums.json", "model.safetensors"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        manifest = json.loads(archive.read("manifest.json"))
        head = archive.read("model.safetensors")
    assert head == runtime.storage.read(f"{FOLDER}/model.safetensors")
    assert [cluster["label"] for cluster in manifest["clusters"]] == ["a", "b", "äöü"]
    assert manifest["model"] == {"name": "cats", "version": 2}
    assert manifest["calibration"] == {"slope": 0.5, "intercept": -0.25}
    changed = ("model", "clusters", "calibration")
    rest = {k: v for k, v in manifest.items() if k not in changed}
    assert rest == {k: v for k, v in small_manifest(3).items() if k != "clusters"}


def test_the_same_version_makes_the_same_file(runtime: Runtime) -> None:
    version = _version(runtime)
    assert _bytes(_pack(runtime, version)) == _bytes(_pack(runtime, version))


def test_a_packed_model_is_unpacked_again(runtime: Runtime) -> None:
    data = _bytes(_pack(runtime, _version(runtime)))
    found = unpack(io.BytesIO(data), runtime.storage, "models/imp_1", None)
    assert found.name == "cats"
    for name in ("model.safetensors",):
        stored = runtime.storage.read(f"models/imp_1/{name}")
        assert stored == runtime.storage.read(f"{FOLDER}/{name}")
    again = ModelVersion(
        version=2, folder="models/imp_1", manifest=found.manifest, files=found.files
    )
    assert _bytes(_pack(runtime, again)) == data


def test_packing_yields_small_blocks(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_BLOCK", 1000)
    packed = _pack(runtime, _version(runtime))
    assert max(len(block) for block in packed.blocks()) < 5000


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors"])
@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_a_damaged_version_is_not_sent(runtime: Runtime, name: str, damage: str) -> None:
    version = _version(runtime)
    path = runtime.storage.path(f"{FOLDER}/{name}")
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(ModelIntegrity, match=name):
        _pack(runtime, version)
