"""Inference backends: ONNX Runtime on a CPU, torch on a GPU.

The choice depends on the kind of device and the precision, never on measured times. On a CPU
images are computed one at a time, so that the features of an image depend neither on the number
of cores nor on the rest of the batch: all processes of a service get bit-identical features.
"""

import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from temi.backbones.preprocessing import Preprocessing
from temi.config import Precision
from temi.device import torch_threads

# Relative to the largest feature. Rounding alone causes about a thirtieth of it.
TOLERANCE = 1e-4

Forward = Callable[[Tensor], Tensor]
"""Pixels (B, S, S, 3) in uint8 to features (B, D) in float32, computed by torch."""


class Backend(Protocol):
    """Pixels (B, S, S, 3) in uint8 to features (B, D) in float32; thread-safe."""

    name: str

    def embed(self, pixels: Tensor, threads: int = 1) -> Tensor:
        """Compute with up to ``threads`` cores; the features do not depend on their number."""


class TorchBackend:
    """Runs the network with torch."""

    name = "torch"

    def __init__(self, forward: Forward, device: torch.device) -> None:
        self._forward = forward
        self._on_cpu = device.type == "cpu"

    def embed(self, pixels: Tensor, threads: int = 1) -> Tensor:  # noqa: ARG002
        """On a CPU always on one core: with more, torch uses kernels that round differently."""
        if not self._on_cpu:
            return self._forward(pixels).cpu()
        with torch_threads(1):
            return torch.cat([self._forward(one) for one in torch.split(pixels, 1)])


class OnnxBackend:
    """Runs the network with ONNX Runtime, with one session for each number of threads."""

    name = "onnx"

    def __init__(self, graph: bytes) -> None:
        self.graph = graph
        self._lock = threading.Lock()
        self._sessions: dict[int, Any] = {}

    def embed(self, pixels: Tensor, threads: int = 1) -> Tensor:
        session = self._session(threads)
        features = [session.run(None, {"pixels": one.numpy()})[0] for one in torch.split(pixels, 1)]
        return torch.cat([torch.from_numpy(one) for one in features])

    def _session(self, threads: int) -> Any:
        with self._lock:
            if threads not in self._sessions:
                self._sessions[threads] = _open_session(self.graph, threads)
            return self._sessions[threads]


def select_backend(
    network: nn.Module,
    forward: Forward,
    preprocessing: Preprocessing,
    *,
    precision: Precision,
    device: torch.device,
) -> Backend:
    """Return ONNX Runtime for float32 on a CPU if its features equal torch's, else torch."""
    fallback = TorchBackend(forward, device)
    if device.type != "cpu" or precision != "float32":
        return fallback
    size = preprocessing.size
    noise = torch.randint(0, 256, (2, size, size, 3), generator=torch.Generator().manual_seed(0))
    pixels = noise.to(torch.uint8)
    try:
        onnx = OnnxBackend(_to_onnx(network, preprocessing))
        same = agree(fallback.embed(pixels), onnx.embed(pixels))
    except Exception:  # noqa: BLE001 - a network may have operations that ONNX does not support
        return fallback
    return onnx if same else fallback


def agree(one: Any, other: Any) -> bool:
    """Return whether features are equal within the tolerance."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    largest = max(1.0, one.abs().max().item())
    return (one - other).abs().max().item() <= TOLERANCE * largest


class _FromPixels(nn.Module):
    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("mean", torch.tensor(preprocessing.mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(preprocessing.std).view(1, 3, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        planes = pixels.to(torch.float32).permute(0, 3, 1, 2)  # (1, 3, S, S)
        features: Tensor = self.module((planes - self.mean) / self.std)
        return features


def _to_onnx(network: nn.Module, preprocessing: Preprocessing) -> bytes:
    size = preprocessing.size
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the legacy exporter is fast and needs no other package
        path = Path(folder, "backbone.onnx")
        torch.onnx.export(
            _FromPixels(network, preprocessing).eval(),
            (torch.zeros((1, size, size, 3), dtype=torch.uint8),),
            str(path),
            input_names=["pixels"],
            output_names=["features"],
            dynamo=False,
        )
        return path.read_bytes()


def _open_session(graph: bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads would take the cores from the decoding threads.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
