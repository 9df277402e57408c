"""Backbones converted to ONNX graphs, in a folder of this machine; does not load torch.

Loading a backbone with torch takes seconds and a gigabyte. Its graph is stored when it is first
loaded on a CPU; later processes need only the graph, and compute bit-identical features.
"""

import hashlib
import importlib.metadata
import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temi.backbones.extractor import Features
from temi.backbones.onnx import OnnxBackend
from temi.backbones.preprocessing import Pixels, Preprocessing
from temi.config import Precision
from temi.naming.classifier import Classifier

if TYPE_CHECKING:
    from temi.backbones.base import Backbone

_FORMAT = 1  # of the descriptions, and of what a graph computes
_MAX_GRAPHS = 32  # the least recently used are deleted
# Another version may convert a network to other operations, whose features differ in the last bits.
_PACKAGES = ("torch", "timm", "open_clip_torch", "onnxruntime")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvertedBackbone:
    """A backbone that ONNX Runtime computes on a CPU, in float32."""

    name: str
    weights_hash: str
    preprocessing: Preprocessing
    dim: int
    backend: OnnxBackend
    load_classifier: Callable[[], Classifier | None]
    precision: Precision = field(default="float32", init=False)
    device_type: str = field(default="cpu", init=False)

    @property
    def bytes(self) -> int:
        return 2 * len(self.backend.graph)  # the graph, and a session with its own copy

    def embed(self, pixels: Pixels, threads: int = 1) -> Features:
        return self.backend.embed(pixels, threads)


class ConvertedBackbones:
    """The folder: `<key>.json` describes a backbone and names its files, `<sha256>.onnx` with the
    graph and `<sha256>.safetensors` with its classifier.

    A file whose bytes do not have its SHA-256 is never used: it counts as missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, name: str, weights_hash: str) -> bool:
        """Whether the backbone has been converted, or is known to be computed by torch only."""
        found = self.load(name, weights_hash)  # forgets a damaged one
        return found is not None or self._description(name, weights_hash).is_file()

    def load(self, name: str, weights_hash: str) -> ConvertedBackbone | None:
        """Return the backbone; None if it was not converted, or cannot be."""
        path = self._description(name, weights_hash)
        if not path.is_file():
            return None
        try:
            described = json.loads(path.read_bytes())
            if described["graph"] is None:
                return None
            backbone = ConvertedBackbone(
                name=name,
                weights_hash=weights_hash,
                preprocessing=_preprocessing(described["preprocessing"]),
                dim=described["dim"],
                backend=OnnxBackend(self._read(described["graph"])),
                load_classifier=partial(self._read_classifier, described["classifier"]),
            )
            path.touch()  # for the order of use
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("The converted backbone %s is not used: %s", name, error)
            path.unlink(missing_ok=True)  # it is converted again
            return None
        return backbone

    def add(self, backbone: "Backbone") -> None:
        """Store the graph of the backbone, or that it has none."""
        backend = backbone.backend
        graph = backend.graph if isinstance(backend, OnnxBackend) else None
        classifier = None if graph is None else backbone.load_classifier()
        try:
            described = {
                "graph": graph and self._store(graph, "onnx"),
                "classifier": classifier and self._store(classifier.to_bytes(), "safetensors"),
                "preprocessing": backbone.preprocessing.as_dict(),
                "dim": backbone.dim,
            }
            path = self._description(backbone.name, backbone.weights_hash)
            self._write(path, json.dumps(described).encode())
            self._delete_surplus()
        except OSError as error:  # a full or read-only disk: the next process converts it again
            _log.warning("The converted backbone %s is not stored: %s", backbone.name, error)

    def hash_of_file(self, name: str, file_sha256: str) -> str | None:
        """Return the hash of the weights that a file was loaded to, if it is known."""
        try:
            return self._file_note(name, file_sha256).read_text()
        except OSError:
            return None

    def note_file(self, name: str, file_sha256: str, weights_hash: str) -> None:
        try:
            self._write(self._file_note(name, file_sha256), weights_hash.encode())
        except OSError as error:
            _log.warning("The hash of the weights of %s is not stored: %s", name, error)

    def _description(self, name: str, weights_hash: str) -> Path:
        return self._folder / f"{_key(name, weights_hash)}.json"

    def _store(self, data: bytes, ending: str) -> str:
        name = f"{hashlib.sha256(data).hexdigest()}.{ending}"
        self._write(self._folder / name, data)
        return name

    def _read(self, name: str) -> bytes:
        data = (self._folder / name).read_bytes()
        if hashlib.sha256(data).hexdigest() != Path(name).stem:
            raise ValueError(f"the SHA-256 of {name} does not match")
        return data

    def _read_classifier(self, name: str | None) -> Classifier | None:
        return None if name is None else Classifier.from_bytes(self._read(name))

    def _file_note(self, name: str, file_sha256: str) -> Path:
        return self._folder / f"{_key(name, file_sha256)}.hash"

    def _write(self, path: Path, data: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
        unfinished.write_bytes(data)
        unfinished.replace(path)

    def _delete_surplus(self) -> None:
        graphs = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in graphs[:-_MAX_GRAPHS]:
            path.unlink(missing_ok=True)
        used = {name for path in self._folder.glob("*.json") for name in _files_of(path)}
        for path in (*self._folder.glob("*.onnx"), *self._folder.glob("*.safetensors")):
            if path.name not in used:
                path.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files_of(description: Path) -> tuple[str | None, ...]:
    try:
        described = json.loads(description.read_bytes())
        return described["graph"], described["classifier"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def _key(*parts: str) -> str:
    given = json.dumps([_FORMAT, _versions(), *parts])
    return hashlib.sha256(given.encode()).hexdigest()[:32]


@cache
def _versions() -> list[str]:
    return [importlib.metadata.version(name) for name in _PACKAGES]


def _preprocessing(described: dict[str, Any]) -> Preprocessing:
    tuples = {name: tuple(described[name]) for name in ("mean", "std")}
    return Preprocessing(**described | tuples)
