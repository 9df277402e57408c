"""A changed file of a model is not read."""

import hashlib

import pytest

from app.core.models import registry
from app.core.platform.errors import ModelIntegrity
from app.core.runtime import Runtime
from app.core.storage import Storage


def test_a_flipped_bit_is_never_served(runtime: Runtime) -> None:
    storage, data = runtime.storage, bytes(range(64))
    sha256 = hashlib.sha256(data).hexdigest()
    _expect(storage, data, sha256, good=True)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        _expect(storage, bytes(changed), sha256, good=False)
    for changed_data in (b"", data[:-1], data + b"\x00"):
        _expect(storage, changed_data, sha256, good=False)


def _expect(storage: Storage, data: bytes, sha256: str, *, good: bool) -> None:
    storage.write("models/m/model.safetensors", data)
    if good:
        assert registry.read_verified(storage, "models/m", "model.safetensors", sha256) == data
    else:
        with pytest.raises(ModelIntegrity, match="was changed"):
            registry.read_verified(storage, "models/m", "model.safetensors", sha256)


def test_a_missing_file_is_an_integrity_error(runtime: Runtime) -> None:
    with pytest.raises(ModelIntegrity, match="cannot be read"):
        registry.read_verified(runtime.storage, "models/none", "model.safetensors", "00")
