"""Antialiased resizing of square images, with the same bits on every machine.

Pillow's filters with weights rounded to 16 bits, first along the rows, then along the columns: the
pixels equal those of torch's antialiased interpolation of bytes. All sums are sums of integers that
float32 represents exactly, so they depend neither on the order nor on the library that adds them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]

_WEIGHT_BITS = 15  # and a sign
_MAX_PRECISION = 22
_BLOCK = 16  # outputs of one product: more of them share inputs, but have more weights of zero
_CENTER = 128.0  # is subtracted from pixels, which halves the largest sum


def resize(square: npt.NDArray[np.uint8], size: int, interpolation: str) -> npt.NDArray[np.uint8]:
    """Resize (side, side, 3) to (size, size, 3); bilinear or bicubic."""
    side = len(square)
    if side == size:
        return square
    axis = _resized_axis(side, size, interpolation)
    planes = np.empty((3, side, side), dtype=axis.dtype)
    planes[:] = square.transpose(2, 0, 1)
    planes -= _CENTER
    wide = np.empty((3 * side, size), dtype=axis.dtype)
    for block in axis.blocks:
        inputs = planes.reshape(3 * side, side)[:, block.inputs]
        wide[:, block.outputs] = inputs @ block.weights.T
    _round(wide, axis.offsets)
    resized = np.empty((3, size, size), dtype=axis.dtype)
    for block in axis.blocks:
        rows = wide.reshape(3, side, size)[:, block.inputs]
        np.matmul(block.weights, rows, out=resized[:, block.outputs])
    _round(resized, axis.offsets[:, None])
    resized += _CENTER
    return resized.transpose(1, 2, 0).astype(np.uint8)


@dataclass(frozen=True)
class _Block:
    """The weights of a few neighboring outputs, and the inputs that they need."""

    outputs: slice
    inputs: slice
    weights: Floats  # (outputs, inputs)


@dataclass(frozen=True)
class _ResizedAxis:
    blocks: tuple[_Block, ...]
    offsets: (
        Floats  # (size,): half a unit for rounding, and what rounded weights lack to a sum of 1
    )
    dtype: type[np.floating]


@lru_cache(maxsize=256)  # about 50 KB each
def _resized_axis(side: int, size: int, interpolation: str) -> _ResizedAxis:
    weights, precision = _integer_weights(side, size, interpolation)
    unit = 2**precision
    offsets = _CENTER * (weights.sum(axis=1) - unit) + unit // 2
    largest = _CENTER * np.abs(weights).sum(axis=1) + np.abs(offsets)
    dtype = np.float32 if largest.max() < 2**24 else np.float64
    scaled = (weights / unit).astype(dtype)
    blocks = []
    for start in range(0, size, _BLOCK):
        outputs = slice(start, min(start + _BLOCK, size))
        used = np.flatnonzero(weights[outputs].any(axis=0))
        inputs = slice(int(used[0]), int(used[-1]) + 1)
        blocks.append(_Block(outputs, inputs, scaled[outputs, inputs].copy()))
    return _ResizedAxis(tuple(blocks), (offsets / unit).astype(dtype), dtype)


def _integer_weights(side: int, size: int, interpolation: str) -> tuple[npt.NDArray[np.int64], int]:
    """Return the weights (size, side) in units of 2^-precision, and the precision."""
    kernel, radius = _KERNELS[interpolation]
    scale = side / size
    support = radius * max(scale, 1.0)
    centers = scale * (np.arange(size) + 0.5)
    first = np.maximum((centers - support + 0.5).astype(np.int64), 0)
    last = np.minimum((centers + support + 0.5).astype(np.int64), side)
    taps = first[:, None] + np.arange(2 * math.ceil(support) + 1)  # (size, taps)
    values = kernel((taps - centers[:, None] + 0.5) * (1.0 / max(scale, 1.0)))
    values[taps >= last[:, None]] = 0.0
    values /= np.cumsum(values, axis=1)[:, -1:]  # added one after the other, as in C
    precision = _precision(float(values.max()))
    rounded = np.trunc(values * 2**precision + np.copysign(0.5, values)).astype(np.int64)
    weights = np.zeros((size, side + taps.shape[1]), dtype=np.int64)
    np.put_along_axis(weights, taps, rounded, axis=1)
    return weights[:, :side], precision


def _precision(largest: float) -> int:
    """Return the bits with which the largest weight still fits."""
    precision = 0
    while (
        precision < _MAX_PRECISION and int(0.5 + largest * 2 ** (precision + 1)) < 2**_WEIGHT_BITS
    ):
        precision += 1
    return precision


def _bilinear(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _bicubic(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    x, a = np.abs(x), -0.5
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


_KERNELS: dict[str, tuple[Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]], float]] = {
    "bilinear": (_bilinear, 1.0),
    "bicubic": (_bicubic, 2.0),
}


def _round(values: Floats, offsets: Floats) -> None:
    """Round to whole pixels in place; they stay centered."""
    values += offsets
    np.floor(values, out=values)
    np.clip(values, -_CENTER, _CENTER - 1.0, out=values)
