"""Preprocessing of a decoded image to the pixels that a backbone sees; does not load torch."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from temi.backbones.cropping import CentralSquare
from temi.backbones.resizing import resize

Pixels = npt.NDArray[np.uint8]
"""A batch of preprocessed images: (B, S, S, 3), or one of them: (S, S, 3)."""

Square = npt.NDArray[np.uint8]
"""The central square of an image by ``Preprocessing.square``: (side, side, 3), not yet resized."""

_FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "nearest": Image.Resampling.NEAREST,
}
INTERPOLATIONS = tuple(_FILTERS)
_EXACT = ("bilinear", "bicubic")  # the same filters as Pillow's, but vectorized


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

    def new_batch(self, count: int) -> Pixels:
        return np.empty((count, self.size, self.size, 3), dtype=np.uint8)

    def fill(self, pixels: Pixels, picture: Image.Image | Square) -> None:
        """Write the resized square of the image into ``pixels`` (S, S, 3), a row of a batch."""
        if isinstance(picture, Image.Image):
            picture = self._crop(picture if picture.mode == "RGB" else picture.convert("RGB"))
        pixels[:] = self._resize(picture)

    def _crop(self, image: Image.Image) -> Square:
        """Crop the central square, reading only its pixels."""
        box = self.square.box(*image.size)
        factor = self.square.factor(box[2] - box[0])
        return np.array(image.reduce(factor, box=box) if factor > 1 else image.crop(box))

    def _resize(self, square: Square) -> Pixels:
        if self.interpolation in _EXACT:
            return resize(square, self.size, self.interpolation)
        image = Image.fromarray(square)
        return np.array(image.resize((self.size, self.size), _FILTERS[self.interpolation]))
