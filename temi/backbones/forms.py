"""Other ways to compute a backbone's features, for those who answer while somebody waits.

A form is what runs; the backbone stays what it is. `choice.py` measures forms on the device at
hand and takes one only if it pays.
"""

import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from temi.backbones.base import Backbone
from temi.preprocessing import Preprocessing

_CALIBRATION_BATCH = 8
_this_thread = threading.local()


def use_cores(count: int) -> None:
    """How many torch may use from now on, in the calling thread."""
    if getattr(_this_thread, "cores", 0) != count:
        torch.set_num_threads(count)
        _this_thread.cores = count


class Form(Protocol):
    """Pixels (B, S, S, 3) in uint8 to features (B, D) in float32; threads may call it at once."""

    name: str

    def embed(self, pixels: Tensor, threads: int) -> Tensor:
        """`threads` are the cores that this call may use."""


class TorchForm:
    """The backbone as every job runs it, with the numbers that suit the device."""

    name = "torch"

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone

    def embed(self, pixels: Tensor, threads: int) -> Tensor:
        use_cores(threads)
        return self._run(pixels).cpu()

    def _run(self, pixels: Tensor) -> Tensor:
        return self._backbone.embed(pixels)


class CompiledForm(TorchForm):
    """What torch.compile makes of it: a minute of work before the first answer."""

    name = "compiled"

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self._embed = torch.compile(backbone.embed, dynamic=True)

    def _run(self, pixels: Tensor) -> Tensor:
        features: Tensor = self._embed(pixels)
        return features


class OnnxForm:
    """ONNX Runtime on the CPU. The number of threads belongs to a session: there is one each."""

    name = "onnx"

    def __init__(self, graph: bytes) -> None:
        self._graph = graph
        self._lock = threading.Lock()
        self._sessions: dict[int, Any] = {}

    @classmethod
    def of(cls, backbone: Backbone) -> "OnnxForm":
        return cls(_to_onnx(backbone))

    def embed(self, pixels: Tensor, threads: int) -> Tensor:
        (features,) = self._session(threads).run(None, {"pixels": pixels.numpy()})
        return torch.from_numpy(features)

    def _session(self, threads: int) -> Any:
        with self._lock:
            if threads not in self._sessions:
                self._sessions[threads] = _open_session(self._graph, threads)
            return self._sessions[threads]


class Int8Form(OnnxForm):
    """Weights and activations in eight bits, their ranges taken from a sample of pictures."""

    name = "int8"

    @classmethod
    def quantized(cls, backbone: Backbone, sample: Tensor) -> "Int8Form":
        return cls(_to_int8(_to_onnx(backbone), sample))


MAKERS: Mapping[str, Callable[[Backbone, Tensor], Form]] = {
    "torch": lambda backbone, _: TorchForm(backbone),
    "compiled": lambda backbone, _: CompiledForm(backbone),
    "onnx": lambda backbone, _: OnnxForm.of(backbone),
    "int8": Int8Form.quantized,
}
LOSSY = ("int8",)
ON_GPU = ("torch", "compiled")


class _FromPixels(nn.Module):
    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("mean", torch.tensor(preprocessing.mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(preprocessing.std).view(1, 3, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        planes = pixels.to(torch.float32).permute(0, 3, 1, 2)  # (B, 3, S, S)
        features: Tensor = self.module((planes - self.mean) / self.std)
        return features


def _to_onnx(backbone: Backbone) -> bytes:
    size = backbone.preprocessing.size
    network = _FromPixels(backbone.fast, backbone.preprocessing).eval()
    example = torch.zeros((2, size, size, 3), dtype=torch.uint8)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older exporter needs no further package and is quick
        path = Path(folder, "backbone.onnx")
        torch.onnx.export(
            network,
            (example,),
            str(path),
            input_names=["pixels"],
            output_names=["features"],
            dynamic_axes={"pixels": {0: "n"}, "features": {0: "n"}},
            dynamo=False,
        )
        return path.read_bytes()


def _to_int8(graph: bytes, sample: Tensor) -> bytes:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Sample(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._batches = iter(torch.split(sample, _CALIBRATION_BATCH))

        def get_next(self) -> dict[str, Any] | None:
            batch = next(self._batches, None)
            return None if batch is None else {"pixels": np.asarray(batch)}

    with tempfile.TemporaryDirectory() as folder:
        plain, shaped, quantized = (Path(folder, name) for name in ("plain", "shaped", "int8"))
        plain.write_bytes(graph)
        quant_pre_process(str(plain), str(shaped))
        quantize_static(
            str(shaped),
            str(quantized),
            Sample(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
        )
        return quantized.read_bytes()


def _open_session(graph: bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait by turning take the cores from those that decode.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
