"""The backend depends on device and precision, and features are bit-identical."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from temi.backbones import backends
from temi.backbones.backends import TOLERANCE, TorchBackend
from temi.backbones.base import Backbone, normalize
from temi.backbones.embedding import embed_images
from temi.backbones.extractor import Features
from temi.backbones.load import load_backbone
from temi.backbones.onnx import OnnxBackend
from temi.backbones.preprocessing import Pixels, Preprocessing
from temi.config import Precision
from temi.device import torch_threads

_SIZE = 16
_SETTINGS = Preprocessing(
    size=_SIZE, resize=_SIZE, interpolation="bicubic", mean=(120.0,) * 3, std=(60.0,) * 3
)


def _module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 24),
    )


def _backbone(module: nn.Module | None = None, precision: Precision = "float32") -> Backbone:
    return Backbone(
        name="small",
        module=module or _module(),
        preprocessing=_SETTINGS,
        weights_hash="0" * 64,
        device=torch.device("cpu"),
        precision=precision,
    )


def _pictures(n: int, size: int = _SIZE) -> Pixels:
    return np.random.default_rng(1).integers(0, 256, (n, size, size, 3), dtype=np.uint8)


def _exact(backbone: Backbone, pixels: Pixels) -> Features:
    """The features computed by torch, in one batch."""
    batch = normalize(torch.from_numpy(pixels), backbone.preprocessing)
    return backbone.forward(batch).numpy()


def _in_batches(backbone: Backbone, pixels: Pixels, size: int, threads: int = 1) -> Features:
    batches = [pixels[start : start + size] for start in range(0, len(pixels), size)]
    return np.concatenate([backbone.embed(batch, threads) for batch in batches])


class _Unexportable(nn.Module):
    """Branches on the values of its input, which an ONNX graph cannot."""

    def forward(self, batch: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(batch.detach()).mean(axis=(2, 3)))


class _Drifting(nn.Module):
    """Computes different features when it is exported."""

    def forward(self, batch: Tensor) -> Tensor:
        return batch.mean(dim=(2, 3)) * (1.01 if torch.onnx.is_in_onnx_export() else 1.0)


def test_a_cpu_computes_float32_by_onnx_runtime() -> None:
    backbone = _backbone()
    pixels = _pictures(5)

    assert isinstance(backbone.backend, OnnxBackend)
    exact = _exact(backbone, pixels)
    found = backbone.embed(pixels)
    assert found.dtype == np.float32
    assert np.abs(found - exact).max() <= TOLERANCE * np.abs(exact).max()


@pytest.mark.parametrize("module", [_Unexportable(), _Drifting()], ids=["fails", "differs"])
def test_torch_is_the_fallback_for_onnx_runtime(module: nn.Module) -> None:
    assert isinstance(_backbone(module).backend, TorchBackend)


def test_the_choice_does_not_depend_on_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if ONNX Runtime is slow."""
    slow_run = OnnxBackend.embed

    def embed(self: OnnxBackend, pixels: Pixels, threads: int = 1) -> Features:
        for _ in range(50):
            slow_run(self, pixels, threads)
        return slow_run(self, pixels, threads)

    monkeypatch.setattr(OnnxBackend, "embed", embed)
    assert isinstance(_backbone().backend, OnnxBackend)


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_the_choice_does_not_depend_on_the_processor(
    monkeypatch: pytest.MonkeyPatch, has_bfloat16: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_bfloat16)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_bfloat16)
    pixels = _pictures(3)

    assert _backbone().backend.name == "onnx"
    assert _backbone(precision="bfloat16").backend.name == "torch"
    np.testing.assert_array_equal(_backbone().embed(pixels), _backbone().embed(pixels))


def test_bfloat16_is_used_if_it_is_set() -> None:
    pixels = _pictures(4)
    exact, rounded = _backbone().embed(pixels), _backbone(precision="bfloat16").embed(pixels)

    assert rounded.dtype == np.float32
    difference = np.abs(exact - rounded).max() / np.abs(exact).max()
    assert 1e-4 < difference < 0.1  # bfloat16 keeps eight bits


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["onnx", "torch"])
def test_features_are_bit_identical_alone_and_in_any_batch(kind: str, precision: Precision) -> None:
    backbone = _backbone(precision=precision)
    if kind == "torch":
        backbone._backend = TorchBackend(backbone._embed_by_torch, backbone.device)
    pixels = _pictures(33)
    alone = _in_batches(backbone, pixels, 1)

    for size in (2, 3, 16, 33):
        for threads in (1, 2, 5):
            with torch_threads(threads):
                found = _in_batches(backbone, pixels, size, threads)
            assert np.array_equal(found, alone), (size, threads)


def test_the_embedded_backbone_is_bit_identical_on_any_number_of_cores() -> None:
    backbone = load_backbone("efficientnet_lite0", device="cpu")
    size = backbone.preprocessing.size
    pixels = _pictures(6, size)
    exact = _exact(backbone, pixels)
    alone = _in_batches(backbone, pixels, 1)

    assert backbone.backend.name == "onnx"
    assert np.abs(alone - exact).max() <= TOLERANCE * np.abs(exact).max()
    for threads in (2, 3):
        assert np.array_equal(backbone.embed(pixels, threads), alone)
    pictures = [Image.fromarray(one) for one in pixels]
    for threads in (1, 3):
        found = np.concatenate(list(embed_images(backbone, pictures, threads=threads)))
        np.testing.assert_array_equal(found, alone)


def test_several_loads_are_bit_identical() -> None:
    pixels = _pictures(2, 224)
    features = [load_backbone("efficientnet_lite0", device="cpu").embed(pixels) for _ in range(3)]

    assert all(np.array_equal(one, features[0]) for one in features)


def test_the_number_of_torch_threads_is_restored() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_the_backbones_package_does_not_measure_time() -> None:
    """No module imports a clock."""
    for source in Path(backends.__file__).parent.glob("*.py"):
        text = source.read_text()
        assert "perf_counter" not in text
        assert "monotonic" not in text
