"""No model file takes more than the documented memory and time."""

import json
import struct
from pathlib import Path
from typing import cast

import numpy as np
import safetensors.numpy

from tests.bounded import call_bounded
from tests.core.models.package.archives import packed, parts
from tests.core.models.package.unpacking_steps import unpacked
from tests.model_files import DIM, small_head, small_manifest

MiB = 1024 * 1024


def _unpack(path: Path) -> str:
    return cast(
        str, call_bounded("tests.core.models.package.unpacking_steps:unpack_file", str(path))
    )


def _written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "model.temi"
    path.write_bytes(data)
    return path


def test_json_of_millions_of_values(tmp_path: Path) -> None:
    values = b'{"a": [' + b"[]," * 5_000_000 + b"[]]}"
    error = _unpack(_written(tmp_path, packed(parts() | {"manifest.json": values})))
    assert error == "model_file_invalid: manifest.json has more than 500,000 values."


def test_a_header_of_tensors_of_many_megabytes(tmp_path: Path) -> None:
    """The library itself allows 100 MB."""
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({str(number): entry for number in range(600_000)}).encode()
    tensors = struct.pack("<Q", len(header)) + header
    error = _unpack(_written(tmp_path, packed(parts() | {"model.safetensors": tensors})))
    assert error.startswith("model_file_invalid: model.safetensors: its header has more than")


def test_a_directory_behind_a_record_that_is_missing(tmp_path: Path) -> None:
    """The zip64 locator points to a record that the library does not read."""
    path = tmp_path / "model.temi"
    place = bytes(56)  # no signature
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    size = 600 * MiB
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 3, 3, size, 0, 0)
    with path.open("wb") as file:
        file.truncate(size)  # takes no room on the disk
        file.seek(size)
        file.write(place + locator + end)
    assert _unpack(path).startswith("model_file_invalid: The file is damaged")


def test_a_model_of_many_clusters_is_unpacked(tmp_path: Path) -> None:
    """As many as the limits allow, within the same memory."""
    count = 90_000
    head = small_head(count) | {"w3": np.zeros((3, count), np.float32)}
    members = {
        "manifest.json": json.dumps(small_manifest(count)).encode(),
        "model.safetensors": safetensors.numpy.save(head),
    }
    assert len(head["w1"]) == DIM
    assert _unpack(_written(tmp_path, packed(members))) == unpacked
