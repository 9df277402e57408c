"""The central crop of an image; does not load torch, because decoder processes use it."""

import math
from dataclasses import dataclass

Box = tuple[int, int, int, int]
"""Left, top, right, bottom, as in Pillow."""


@dataclass(frozen=True, kw_only=True)
class CentralSquare:
    """The central square of ``size`` pixels after resizing the shorter side to ``resize``."""

    size: int
    resize: int

    @property
    def decode_side(self) -> int:
        """The smallest shorter side to which a JPEG may be scaled down while decoding.

        On 12 crops of two photos, half size against whole gave features of mean cosine 0.994 to
        0.995 at margins from 1.5 to 2, and 0.990 to 0.994 at 1.1 to 1.3: a small sample without a
        clear trend. The same crops saved again at quality 75 had 0.996 to 0.997.
        """
        return math.ceil(1.5 * self.resize)

    def box(self, width: int, height: int) -> Box:
        side = max(1, round(min(width, height) * self.size / self.resize))
        left, top = (width - side) // 2, (height - side) // 2
        return left, top, left + side, top + side

    def factor(self, side: int) -> int:
        """Return the integer factor to reduce much larger images by first, which is faster."""
        return max(1, side // (2 * self.size))
