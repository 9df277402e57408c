"""Inference backends: ONNX Runtime on a CPU, torch on a GPU.

The choice depends on the kind of device and the precision, never on measured times. On a CPU
images are computed one at a time, so that the features of an image depend neither on the number
of cores nor on the rest of the batch: all processes of a service get bit-identical features.
"""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from temi.backbones.extractor import Backend, Features
from temi.backbones.onnx import OnnxBackend
from temi.backbones.preprocessing import Pixels, Preprocessing
from temi.config import Precision
from temi.device import torch_threads

# Relative to the largest feature. Rounding alone causes about a thirtieth of it.
TOLERANCE = 1e-4

Forward = Callable[[Tensor], Tensor]
"""Pixels (B, S, S, 3) in uint8 to features (B, D) in float32, computed by torch."""


class TorchBackend:
    """Runs the network with torch."""

    name = "torch"

    def __init__(self, forward: Forward, device: torch.device) -> None:
        self._forward = forward
        self._on_cpu = device.type == "cpu"

    def embed(self, pixels: Pixels, threads: int = 1) -> Features:  # noqa: ARG002
        """On a CPU always on one core: with more, torch uses kernels that round differently."""
        batch = torch.from_numpy(pixels)
        if not self._on_cpu:
            return self._forward(batch).cpu().numpy()
        with torch_threads(1):
            return torch.cat([self._forward(one) for one in torch.split(batch, 1)]).numpy()


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
    pixels = noise.to(torch.uint8).numpy()
    try:
        onnx = OnnxBackend(_to_onnx(network, preprocessing))
        same = agree(*(torch.from_numpy(way.embed(pixels)) for way in (fallback, onnx)))
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
