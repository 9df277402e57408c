"""A backbone loaded with torch."""

import hashlib
import threading
from collections.abc import Callable, Mapping

import torch
from PIL import Image
from torch import Tensor, nn

from temi.backbones.backends import select_backend
from temi.backbones.extractor import Backend, Features
from temi.backbones.inference import fold_batch_norms
from temi.backbones.preprocessing import Pixels, Preprocessing
from temi.config import Precision
from temi.errors import TemiError
from temi.naming.classifier import Classifier
from temi.precision import autocast_to, matrix_dtype


class Backbone:
    """A frozen feature extractor with the preprocessing it was trained with.

    ``module`` is the extractor as it was loaded. Features are computed by a faster module that
    shares most of its weights: to train it, train a copy and make a new Backbone from that.
    """

    def __init__(
        self,
        *,
        name: str,
        module: nn.Module,
        preprocessing: Preprocessing,
        weights_hash: str,
        device: torch.device,
        precision: Precision = "float32",
        load_classifier: Callable[[], Classifier | None] = lambda: None,
    ) -> None:
        self.name = name
        self.precision = precision
        self.preprocessing = preprocessing
        self.weights_hash = weights_hash
        self.device = device
        self.load_classifier = load_classifier  # that the weights were trained with
        self.module = module.eval().requires_grad_(False).to(device)
        size = preprocessing.size
        # Noise, not zeros: every layer gets a different input.
        noise = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))
        example = noise.to(device).contiguous(memory_format=torch.channels_last)
        self.fast = fold_batch_norms(self.module, example)
        self._dtype = matrix_dtype(precision)
        self._backend: Backend | None = None
        self._lock = threading.Lock()
        self.dim = int(self.forward(example).shape[1])

    def preprocess(self, image: Image.Image) -> Tensor:
        """Return an RGB image as a (3, S, S) float32 tensor; thread-safe."""
        pixels = self.preprocessing.new_batch(1)
        self.preprocessing.fill(pixels[0], image)
        return normalize(torch.from_numpy(pixels), self.preprocessing)[0].contiguous()

    @property
    def device_type(self) -> str:
        return self.device.type

    @property
    def bytes(self) -> int:
        tensors = (*self.module.parameters(), *self.module.buffers())
        copies = 1 if self.backend.name == "torch" else 2
        return copies * sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def backend(self) -> Backend:
        """The inference backend, created with the first image."""
        with self._lock:
            if self._backend is None:
                self._backend = select_backend(
                    self.fast,
                    self._embed_by_torch,
                    self.preprocessing,
                    precision=self.precision,
                    device=self.device,
                )
            return self._backend

    @torch.inference_mode()
    def embed(self, pixels: Pixels, threads: int = 1) -> Features:
        """Map pixels (B, S, S, 3) to features (B, D)."""
        return self.backend.embed(pixels, threads)

    @torch.inference_mode()
    def _embed_by_torch(self, pixels: Tensor) -> Tensor:
        return self.forward(normalize(pixels.to(self.device), self.preprocessing))

    @torch.inference_mode()
    def forward(self, batch: Tensor) -> Tensor:
        """Map (B, 3, S, S) to features (B, D) in float32, on the backbone's device."""
        batch = batch.to(self.device).contiguous(memory_format=torch.channels_last)
        with autocast_to(self._dtype, self.device):
            features = self.fast(batch)
        if not isinstance(features, Tensor) or features.ndim != 2:
            raise TemiError(f"{self.name} does not return one feature vector per image")
        return features.float()


def normalize(pixels: Tensor, preprocessing: Preprocessing) -> Tensor:
    """Map (B, S, S, 3) in uint8 to (B, 3, S, S) in float32, channels last in memory."""
    # Whole rows at once: a loop over three channels is too short for vector instructions.
    rows = pixels.to(torch.float32).flatten(2)  # (B, S, S * 3)
    mean, std = (
        torch.tensor(values, device=pixels.device).repeat(pixels.shape[2])
        for values in (preprocessing.mean, preprocessing.std)
    )
    return rows.sub_(mean).div_(std).view(pixels.shape).permute(0, 3, 1, 2)


def hash_tensors(state: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 over names, types, shapes and bytes; it does not depend on the format."""
    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
