"""Checks safetensors files against their manifest, without torch."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.core.models.files import BACKBONE_FILE, MODEL_FILE, NOVELTY_FILE
from app.core.models.package.manifest import Manifest
from app.core.platform.errors import ModelFileInvalid
from temi.novelty import MAX_REFERENCES, QUANTILES

_BLOCK = 1024 * 1024  # a multiple of every item size
_HEADER_BYTES = 4 * 1024 * 1024  # about 40,000 tensors; the largest backbones have a thousand
_TORCH_TYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


class _Tensor(NamedTuple):
    name: str
    type: str
    shape: tuple[int, ...]
    start: int  # in the file
    end: int


def check_head(path: Path, manifest: Manifest) -> None:
    """Checks that the file has exactly the tensors of a head, in the shapes of the manifest."""
    tensors = _read_header(MODEL_FILE, path)
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    hidden, bottleneck = (shapes.get(bias, ()) for bias in ("b1", "b2"))
    dim, n_clusters = (manifest.feature_dim,), (manifest.n_clusters,)
    expected = {
        "mean": dim,
        "std": dim,
        "w1": dim + hidden,
        "b1": hidden,
        "w2": hidden + bottleneck,
        "b2": bottleneck,
        "w3": bottleneck + n_clusters,
    }
    if len(hidden) != 1 or len(bottleneck) != 1 or shapes != expected:
        raise ModelFileInvalid(
            f"The tensors of {MODEL_FILE} do not fit a manifest with feature_dim "
            f"{manifest.feature_dim} and n_clusters {manifest.n_clusters}: {_summary(shapes)}"
        )
    for tensor in tensors:
        _check_numbers(MODEL_FILE, path, tensor)


def check_novelty(path: Path, manifest: Manifest) -> None:
    """Checks that the file has the tensors of a novelty detector for the manifest's features."""
    tensors = _read_header(NOVELTY_FILE, path)
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    count = shapes.get("references", (0,))[0]
    expected = {"references": (count, manifest.feature_dim), "quantiles": (QUANTILES,)}
    if shapes != expected or not 1 <= count <= MAX_REFERENCES:
        raise ModelFileInvalid(
            f"The tensors of {NOVELTY_FILE} do not fit a manifest with feature_dim "
            f"{manifest.feature_dim}: {_summary(shapes)}"
        )
    for tensor in tensors:
        _check_numbers(NOVELTY_FILE, path, tensor)
    quantiles = next(tensor for tensor in tensors if tensor.name == "quantiles")
    if (np.diff(np.frombuffer(b"".join(_blocks(path, quantiles)), "<f4")) < 0).any():
        raise ModelFileInvalid(f"{NOVELTY_FILE}: quantiles must ascend.")


def _check_numbers(file: str, path: Path, tensor: _Tensor) -> None:
    """Reads in blocks: a head may be larger than the memory of a request."""
    for block in _blocks(path, tensor):
        if tensor.type != "F32" or not np.isfinite(values := np.frombuffer(block, "<f4")).all():
            raise ModelFileInvalid(f"{file}: {tensor.name} must have finite float32 numbers.")
        if tensor.name == "std" and not values.all():
            raise ModelFileInvalid(f"{MODEL_FILE}: std must not contain zeros.")


def check_backbone(path: Path, manifest: Manifest) -> None:
    """Checks the weights against weights_sha256 of the manifest."""
    if _hash_weights(path) != manifest.weights_sha256:
        raise ModelFileInvalid(
            f"The weights in {BACKBONE_FILE} do not match weights_sha256 of the manifest."
        )


def _hash_weights(path: Path) -> str:
    """The weights hash of a backbone, computed from the bytes of the file."""
    digest = hashlib.sha256()
    for tensor in sorted(_read_header(BACKBONE_FILE, path)):
        if tensor.type not in _TORCH_TYPES:
            raise ModelFileInvalid(f"{BACKBONE_FILE}: the type {tensor.type} is not supported.")
        named = f"{tensor.name}|torch.{_TORCH_TYPES[tensor.type]}|{tensor.shape}|"
        digest.update(named.encode())
        for block in _blocks(path, tensor):
            digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path, tensor: _Tensor) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(tensor.start)
        left = tensor.end - tensor.start
        while left > 0 and (block := file.read(min(left, _BLOCK))):
            left -= len(block)
            yield block


def _read_header(name: str, path: Path) -> list[_Tensor]:
    """Parses the header after the library has checked every offset."""
    from safetensors import SafetensorError, safe_open

    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > _HEADER_BYTES:  # the library allows 100 MB, which take gigabytes when parsed
        raise ModelFileInvalid(f"{name}: its header has more than {_HEADER_BYTES:,} bytes.")
    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileInvalid(f"{name} is not a safetensors file: {error}") from error
    with path.open("rb") as file:
        file.seek(8)
        header: dict[str, Any] = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return [_tensor(key, entry, 8 + size) for key, entry in header.items()]


def _tensor(name: str, entry: dict[str, Any], offset: int) -> _Tensor:
    start, end = entry["data_offsets"]
    return _Tensor(name, entry["dtype"], tuple(entry["shape"]), offset + start, offset + end)


def _summary(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name[:40]} {shape}" for name, shape in sorted(shapes.items())[:10])
