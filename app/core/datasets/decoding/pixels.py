"""Converts decoded pixels to upright RGB in parts: a copy of the whole would double the memory."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from temi.backbones.cropping import Box, CentralSquare

_ORIENTATION = 0x0112
_STRIP_PIXELS = 1_000_000
_TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
Crop = Callable[[Box], Image.Image]
"""Returns a part of the image as it is stored."""


class UprightPixels:
    """A decoded image of any mode. Boxes refer to the upright image."""

    def __init__(self, size: tuple[int, int], mode: str, crop: Crop, orientation: int = 1) -> None:
        self._stored_size = size
        self._mode = mode
        self._crop = crop
        self._orientation = orientation if orientation in _TRANSPOSITIONS else 1

    @classmethod
    def of_image(cls, image: Image.Image) -> "UprightPixels":
        """From a loaded image."""
        orientation = image.getexif().get(_ORIENTATION, 1)
        return cls(image.size, image.mode, image.crop, orientation)

    @classmethod
    def of_array(cls, pixels: npt.NDArray[np.uint8], mode: str) -> "UprightPixels":
        """From an upright array, (H, W) or (H, W, C)."""

        def crop(box: Box) -> Image.Image:
            left, top, right, bottom = box
            return Image.fromarray(np.ascontiguousarray(pixels[top:bottom, left:right]))

        height, width = pixels.shape[:2]
        return cls((width, height), mode, crop)

    @property
    def size(self) -> tuple[int, int]:
        return self.upright(self._stored_size)

    def upright(self, size: tuple[int, int]) -> tuple[int, int]:
        """The upright size of an image with this stored size."""
        width, height = size
        return (width, height) if self._orientation < 5 else (height, width)

    def part(self, box: Box) -> Image.Image:
        part = self._crop(self._stored(box))
        if self._orientation != 1:
            part = part.transpose(_TRANSPOSITIONS[self._orientation])
        return self._to_rgb(part)

    def whole(self) -> Image.Image:
        return self.reduced((0, 0, *self.size), 1)

    def check(self) -> None:
        """Raises what `part` would raise."""
        self.part((0, 0, 1, 1))

    def square(self, square: CentralSquare) -> Image.Image:
        box = square.box(*self.size)
        return self.reduced(box, square.factor(box[2] - box[0]))

    def reduced(self, box: Box, factor: int) -> Image.Image:
        """The box reduced by an integer factor, like Pillow's `reduce`."""
        width, height = box[2] - box[0], box[3] - box[1]
        rows = max(1, _STRIP_PIXELS // width // factor) * factor
        if height <= rows:
            return _reduce(self.part(box), factor)
        out = Image.new("RGB", (-(-width // factor), -(-height // factor)))
        for top in range(0, height, rows):
            bottom = min(height, top + rows)
            strip = self.part((box[0], box[1] + top, box[2], box[1] + bottom))
            out.paste(_reduce(strip, factor), (0, top // factor))
        return out

    def _stored(self, box: Box) -> Box:
        """The box in the stored image for a box in the upright image."""
        left, top, right, bottom = box
        width, height = self._stored_size
        if self._orientation >= 5:  # rotated by 90 degrees
            left, top, right, bottom = top, left, bottom, right
        if self._orientation in (2, 3, 7, 8):  # mirrored horizontally
            left, right = width - right, width - left
        if self._orientation in (3, 4, 6, 7):  # mirrored vertically
            top, bottom = height - bottom, height - top
        return left, top, right, bottom

    def _to_rgb(self, part: Image.Image) -> Image.Image:
        if part.mode == "RGB":
            return part
        if part.mode.startswith(("I", "F")):
            return self._scale_deep(part)
        if part.has_transparency_data:
            white = Image.new("RGBA", part.size, "white")
            return Image.alpha_composite(white, part.convert("RGBA")).convert("RGB")
        return part.convert("RGB")

    def _scale_deep(self, part: Image.Image) -> Image.Image:
        """Scales 16 bits and more to 8: clipping would turn most scans white."""
        low, high = self._range
        scaled = (_as_floats(part) - low) * (255.0 / max(high - low, 1e-12))
        return Image.fromarray(scaled.astype(np.uint8)).convert("RGB")

    @cached_property
    def _range(self) -> tuple[float, float]:
        """The range of all values, so that every part is scaled the same way."""
        low, high = 0.0, -np.inf
        for strip in self._stored_strips():
            pixels = _as_floats(strip)
            low, high = min(low, pixels.min()), max(high, pixels.max())
        return low, high if self._mode.startswith("F") else max(high, 65535.0)

    def _stored_strips(self) -> Iterator[Image.Image]:
        width, height = self._stored_size
        rows = max(1, _STRIP_PIXELS // width)
        for top in range(0, height, rows):
            yield self._crop((0, top, width, min(height, top + rows)))


def _reduce(image: Image.Image, factor: int) -> Image.Image:
    return image.reduce(factor) if factor > 1 else image


def _as_floats(image: Image.Image) -> npt.NDArray[Any]:
    return np.nan_to_num(np.asarray(image, dtype=np.float64))
