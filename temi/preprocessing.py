"""From a decoded picture to the tensor that a backbone wants."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

_FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "nearest": Image.Resampling.NEAREST,
}
INTERPOLATIONS = tuple(_FILTERS)


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Shorter side to ``resize``, central square of ``size``, then (x - mean) / std in 0..255."""

    size: int
    resize: int
    interpolation: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: tuples become lists."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def __call__(self, image: Image.Image) -> torch.Tensor:
        square = self._square(image.convert("RGB") if image.mode != "RGB" else image)
        pixels = torch.from_numpy(np.array(square, dtype=np.float32))  # (S, S, 3)
        pixels = (pixels - torch.tensor(self.mean)) / torch.tensor(self.std)
        return pixels.permute(2, 0, 1).contiguous()  # (3, S, S)

    def _square(self, image: Image.Image) -> Image.Image:
        """Crop and resize in one go: only the pixels that end up in the square are touched."""
        side = min(image.size) * self.size / self.resize
        left, top = (image.width - side) / 2, (image.height - side) / 2
        box = (left, top, left + side, top + side)
        # A gap of 2 shrinks large photos by whole pixels first: much faster, no visible loss.
        return image.resize(
            (self.size, self.size), _FILTERS[self.interpolation], box=box, reducing_gap=2.0
        )
