"""Reads L2-normalized rows from features that may be a memory map larger than memory."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError

Features = npt.NDArray[np.floating]
Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

# Rows read and normalized at a time: 16384 rows of 1280 numbers are 84 MB.
_READ_ROWS = 16384


def unit_rows(features: Features, rows: slice | Ids) -> Floats:
    """Return a float32 copy of some rows, each of length one; zero rows stay zero."""
    taken = np.array(features[rows], dtype=np.float32, order="C")
    lengths = _lengths(taken)
    if not np.isfinite(lengths).all():
        if not np.isfinite(taken).all():
            raise TemiError("features contain NaN or infinity")
        # The square of a number above 1e19 overflows float32: such rows are scaled down first.
        taken /= np.maximum(np.abs(taken).max(axis=1, keepdims=True), 1)
        lengths = _lengths(taken)
    taken /= np.maximum(lengths, 1e-12)[:, None]
    return taken


def unit_blocks(
    features: Features, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, Floats]]:
    """Yield blocks of unit rows in the order of the file, each with its first row."""
    stop = len(features) if stop is None else stop
    for first in range(start, stop, _READ_ROWS):
        yield first, unit_rows(features, slice(first, min(first + _READ_ROWS, stop)))


def read_unit_rows(features: Features, start: int, stop: int) -> Floats:
    """Return a range of unit rows: (stop - start, D)."""
    rows = np.empty((stop - start, features.shape[1]), dtype=np.float32)
    for first, block in unit_blocks(features, start, stop):
        rows[first - start : first - start + len(block)] = block
    return rows


def without_self(ids: Ids, own: Ids) -> Ids:
    """Remove one entry of each row: the row's own id if it is listed, else the last entry."""
    is_self = ids == own[:, None]
    dropped = np.where(is_self.any(axis=1), is_self.argmax(axis=1), ids.shape[1] - 1)
    keep = np.arange(ids.shape[1]) != dropped[:, None]
    others: Ids = ids[keep].reshape(len(ids), ids.shape[1] - 1)
    return others


def _lengths(rows: Floats) -> Floats:
    with np.errstate(over="ignore"):
        lengths: Floats = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return lengths
