"""Which part of a picture a backbone sees. Free of torch: processes that only decode use it."""

import math
from dataclasses import dataclass

Box = tuple[int, int, int, int]
"""Left, top, right, bottom, as Pillow has them."""


@dataclass(frozen=True, kw_only=True)
class CentralSquare:
    """The middle of a picture whose shorter side would be ``resize`` when the part is ``size``."""

    size: int
    resize: int

    @property
    def decode_side(self) -> int:
        """Shorter side below which a JPEG should not be decoded at a fraction of its size.

        On 12 crops of two photos, half size against whole gave features of mean cosine 0.994 to
        0.995 at margins from 1.5 to 2, and 0.990 to 0.994 at 1.1 to 1.3: a small sample, and not
        a steady trend. The same crops saved again at quality 75 had 0.996 to 0.997.
        """
        return math.ceil(1.5 * self.resize)

    def box(self, width: int, height: int) -> Box:
        side = max(1, round(min(width, height) * self.size / self.resize))
        left, top = (width - side) // 2, (height - side) // 2
        return left, top, left + side, top + side

    def factor(self, side: int) -> int:
        """Far larger pictures shrink by whole pixels first: much faster, no visible loss."""
        return max(1, side // (2 * self.size))
