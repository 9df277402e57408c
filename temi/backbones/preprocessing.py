"""Preprocessing of a decoded image to the input tensor of a backbone."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from temi.backbones.cropping import CentralSquare

Square = npt.NDArray[np.uint8]
"""The central square of an image by ``Preprocessing.square``: (side, side, 3), not yet resized."""

_FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "nearest": Image.Resampling.NEAREST,
}
INTERPOLATIONS = tuple(_FILTERS)
_BY_TORCH = ("bilinear", "bicubic")  # the same filters as Pillow's, but vectorized


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Resize the shorter side, crop the central square, then (x - mean) / std in 0..255."""

    size: int
    resize: int
    interpolation: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @property
    def square(self) -> CentralSquare:
        return CentralSquare(size=self.size, resize=self.resize)

    @property
    def decode_side(self) -> int:
        return self.square.decode_side

    def as_dict(self) -> dict[str, Any]:
        """Return a dict for JSON, with lists instead of tuples."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def __call__(self, image: Image.Image) -> Tensor:
        pixels = torch.empty((1, self.size, self.size, 3), dtype=torch.uint8)
        self.fill(pixels[0], image)
        return self.normalize(pixels)[0].contiguous()  # (3, S, S)

    def fill(self, pixels: Tensor, picture: Image.Image | Square) -> None:
        """Write the resized square of the image into ``pixels`` (S, S, 3), a row of a batch."""
        if isinstance(picture, Image.Image):
            picture = self._crop(picture if picture.mode == "RGB" else picture.convert("RGB"))
        pixels.copy_(self._resize(picture))

    def normalize(self, pixels: Tensor) -> Tensor:
        """Map (B, S, S, 3) in uint8 to (B, 3, S, S) in float32, channels last in memory."""
        # Whole rows at once: a loop over three channels is too short for vector instructions.
        rows = pixels.to(torch.float32).flatten(2)  # (B, S, S * 3)
        mean, std = (
            torch.tensor(values, device=pixels.device).repeat(pixels.shape[2])
            for values in (self.mean, self.std)
        )
        return rows.sub_(mean).div_(std).view(pixels.shape).permute(0, 3, 1, 2)

    def _crop(self, image: Image.Image) -> Square:
        """Crop the central square, reading only its pixels."""
        box = self.square.box(*image.size)
        factor = self.square.factor(box[2] - box[0])
        return np.array(image.reduce(factor, box=box) if factor > 1 else image.crop(box))

    def _resize(self, square: Square) -> Tensor:
        if self.interpolation in _BY_TORCH:
            return self._by_torch(square)
        image = Image.fromarray(square)
        resized = image.resize((self.size, self.size), _FILTERS[self.interpolation])
        return torch.from_numpy(np.array(resized))

    def _by_torch(self, pixels: Square) -> Tensor:
        batch = torch.from_numpy(pixels).permute(2, 0, 1)[None]  # (1, 3, H, W)
        if batch.shape[2:] != (self.size, self.size):
            batch = functional.interpolate(
                batch, size=(self.size, self.size), mode=self.interpolation, antialias=True
            )
        return batch[0].permute(1, 2, 0)
