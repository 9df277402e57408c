"""A valid file is unpacked; an invalid one is refused."""

import hashlib
import io
import json
import struct
import warnings
import zipfile
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.models.package.unpacking import Unpacked, unpack
from app.core.platform.errors import InvalidRequest, ModelFileInvalid
from app.core.runtime import Runtime
from app.core.storage import Storage
from app.core.storage.local import LocalStorage
from tests.core.models.package.archives import archive, packed, parts, with_checksums
from tests.model_files import DIM, small_head, small_manifest

FOLDER = "models/imp_1"


def _unpack(storage: Storage, data: bytes) -> Unpacked:
    return unpack(io.BytesIO(data), storage, FOLDER, None)


def _refused(storage: Storage, data: bytes, match: str) -> None:
    with pytest.raises(ModelFileInvalid, match=match) as refused:
        _unpack(storage, data)
    assert refused.value.code == "model_file_invalid"


def test_a_valid_file(runtime: Runtime) -> None:
    members = parts()
    found = _unpack(runtime.storage, packed(members))
    assert found.name == "cats"
    assert found.manifest == json.loads(members["manifest.json"])
    assert set(found.files) == set(members)
    for name, sha256 in found.files.items():
        data = runtime.storage.read(f"{FOLDER}/{name}")
        assert data == members[name]
        assert hashlib.sha256(data).hexdigest() == sha256


def test_a_file_without_a_model_name(runtime: Runtime) -> None:
    members = parts() | {"manifest.json": json.dumps(small_manifest(3)).encode()}
    assert _unpack(runtime.storage, packed(members)).name is None


def test_fields_of_a_newer_service_are_kept(runtime: Runtime) -> None:
    found = _unpack(runtime.storage, packed(parts(invented={"later": [1]})))
    assert found.manifest["invented"] == {"later": [1]}


@pytest.mark.parametrize("data", [b"", b"x", b"PK\x05\x06", b"no zip at all" * 100])
def test_a_file_that_is_not_a_zip(runtime: Runtime, data: bytes) -> None:
    _refused(runtime.storage, data, "truncated or not a model file")


def test_an_empty_zip(runtime: Runtime) -> None:
    _refused(
        runtime.storage, archive([]), "has no checksums.json, manifest.json, model.safetensors"
    )


@settings(max_examples=60)
@given(st.data())
def test_a_truncated_file(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    storage, whole = LocalStorage(tmp_path_factory.mktemp("cut")), packed(parts())
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    _refused(storage, cut, "truncated")


@settings(max_examples=200)
@given(st.data())
def test_a_flipped_bit_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Or it was in an unused field, such as a date: then all members are valid."""
    storage, whole = LocalStorage(tmp_path_factory.mktemp("flip")), bytearray(packed(parts()))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = _unpack(storage, bytes(whole))
    except ModelFileInvalid:
        return
    assert found.manifest == json.loads(parts()["manifest.json"])
    for name, sha256 in found.files.items():
        assert hashlib.sha256(parts()[name]).hexdigest() == sha256
        assert storage.read(f"{FOLDER}/{name}") == parts()[name]


@pytest.mark.parametrize(
    "name", ["../manifest.json", "/etc/passwd", "notes.txt", "a/model.safetensors", "x" * 5000]
)
def test_unknown_members(runtime: Runtime, name: str) -> None:
    data = archive([*with_checksums(parts()), (name, b"x")])
    _refused(runtime.storage, data, "not part of a model|lists more members")
    assert not list(runtime.storage.list("models"))


def test_a_member_twice(runtime: Runtime) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of it, too
        data = archive([*with_checksums(parts()), ("manifest.json", b"{}")])
    _refused(runtime.storage, data, "'manifest.json' twice")


@pytest.mark.parametrize("missing", ["manifest.json", "model.safetensors", "checksums.json"])
def test_a_missing_member(runtime: Runtime, missing: str) -> None:
    members = [(name, data) for name, data in with_checksums(parts()) if name != missing]
    _refused(runtime.storage, archive(members), f"has no {missing}")


def test_a_bomb(runtime: Runtime) -> None:
    members = parts() | {"backbone.safetensors": bytes(50_000_000)}
    data = archive(with_checksums(members), zipfile.ZIP_DEFLATED)
    assert len(data) < 200_000
    _refused(runtime.storage, data, "is compressed")
    assert not list(runtime.storage.list("models"))


def test_a_forged_size(runtime: Runtime) -> None:
    """The directory claims a member larger than the whole file."""
    data = bytearray(packed(parts()))
    entry = data.rindex(b"PK\x01\x02", 0, data.rindex(b"model.safetensors"))
    struct.pack_into("<LL", data, entry + 20, 900_000_000, 900_000_000)
    _refused(runtime.storage, bytes(data), "damaged")


def test_a_forged_directory_is_not_read(runtime: Runtime) -> None:
    data = bytearray(packed(parts()))
    struct.pack_into("<L", data, len(data) - 10, 0x7FFFFFFF)
    _refused(runtime.storage, bytes(data), "more members than a model has")


def test_a_forged_large_directory_is_not_read(runtime: Runtime) -> None:
    data = packed(parts())
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 3, 3, 1 << 40, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(data) - 22, 1)
    forged = data[:-22] + record + locator + data[-22:]
    _refused(runtime.storage, forged, "more members than a model has")


def test_an_encrypted_file(runtime: Runtime) -> None:
    data = bytearray(packed(parts()))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    _refused(runtime.storage, bytes(data), "encrypted")


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors"])
def test_a_member_with_a_wrong_checksum(runtime: Runtime, name: str) -> None:
    members = dict(with_checksums(parts()))
    data = archive(list((members | {name: members[name] + b" "}).items()))
    _refused(runtime.storage, data, f"The SHA-256 of {name} does not match checksums.json")
    assert not runtime.storage.exists(f"{FOLDER}/{name}")


@pytest.mark.parametrize(
    "sums",
    [
        b"{}",
        b"[]",
        b"no json",
        b"\xff",
        b'{"manifest.json": "00", "model.safetensors": "00"}',
        b'{"manifest.json": 1, "model.safetensors": 2}',
        b'{"../x": "00"}',
    ],
)
def test_bad_checksums(runtime: Runtime, sums: bytes) -> None:
    data = archive([*parts().items(), ("checksums.json", sums)])
    _refused(runtime.storage, data, "checksums.json")


def test_a_manifest_that_is_too_large(runtime: Runtime) -> None:
    padded = parts()["manifest.json"] + b" " * (17 * 1024 * 1024)
    _refused(runtime.storage, packed(parts() | {"manifest.json": padded}), "larger than")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            {"n_clusters": 4, "clusters": [{"cluster_id": i, "label": "x"} for i in range(4)]},
            "is 3",
        ),
        ({"n_clusters": 2}, "numbered 0, 1"),
        ({"feature_dim": 768}, "1280 features"),
        ({"backbone": "dino_resnet50x"}, "unknown backbone"),
        ({"backbone": "auto"}, "unknown backbone"),
        ({"backbone": "efficientnet_lite0@/etc/passwd"}, "TEMI_WEIGHTS_DIR"),
        ({"backbone": "msn_vitb16", "feature_dim": 768}, "download the public file"),
    ],
)
def test_a_manifest_that_does_not_fit(runtime: Runtime, change: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidRequest, match=match):
        _unpack(runtime.storage, packed(parts(**change)))


def test_a_backbone_that_is_not_that_of_the_manifest(runtime: Runtime) -> None:
    tensors = safetensors.numpy.save({"weight": np.ones((2, 3), np.float32)})
    _refused(runtime.storage, packed(parts() | {"backbone.safetensors": tensors}), "weights_sha256")


def test_tensors_of_another_shape(runtime: Runtime) -> None:
    head = small_head(3) | {"mean": np.zeros(DIM + 1, np.float32)}
    members = parts() | {"model.safetensors": safetensors.numpy.save(head)}
    _refused(runtime.storage, packed(members), "do not fit a manifest with feature_dim 1280")
