"""What every loaded backbone can do, wherever it came from."""

import hashlib
from collections.abc import Mapping

import torch
from PIL import Image
from torch import Tensor, nn

from temi.errors import TemiError
from temi.preprocessing import Preprocessing


class Backbone:
    """A frozen feature extractor with the preprocessing it was trained with."""

    def __init__(
        self,
        *,
        name: str,
        module: nn.Module,
        preprocessing: Preprocessing,
        weights_hash: str,
        device: torch.device,
    ) -> None:
        self.name = name
        self.preprocessing = preprocessing
        self.weights_hash = weights_hash
        self.device = device
        self._module = module.eval().requires_grad_(False).to(device)
        size = preprocessing.size
        self.dim = int(self.forward(torch.zeros(1, 3, size, size)).shape[1])

    def preprocess(self, image: Image.Image) -> Tensor:
        """One RGB picture as a (3, S, S) float32 tensor; safe to call from several threads."""
        return self.preprocessing(image)

    @torch.inference_mode()
    def forward(self, batch: Tensor) -> Tensor:
        """(B, 3, S, S) to features (B, D) in float32, on the backbone's device."""
        batch = batch.to(self.device).contiguous(memory_format=torch.channels_last)
        features = self._module(batch)
        if not isinstance(features, Tensor) or features.ndim != 2:
            raise TemiError(f"{self.name} does not give one feature vector per image")
        return features.float()


def hash_tensors(state: Mapping[str, Tensor]) -> str:
    """sha256 over names, types, shapes and bytes: the same weights in any file format agree."""
    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
