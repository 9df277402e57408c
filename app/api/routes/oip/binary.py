"""Tensors as bytes, by the protocol's binary extension: little-endian, row by row."""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from app.core.platform.errors import InvalidRequest

HEADER = "Inference-Header-Content-Length"  # of the JSON before the tensors
_SIZE = struct.Struct("<I")  # before each element of BYTES


def split(body: bytes, header: str | None) -> tuple[bytes, memoryview]:
    """Returns the JSON and the bytes after it."""
    if header is None:
        return body, memoryview(b"")
    length = int(header) if header.isdecimal() and len(header) < 19 else None
    if length is None or length > len(body):
        raise InvalidRequest.field(
            HEADER, f"must be the length of the JSON, within the {len(body):,} bytes of the body"
        )
    return body[:length], memoryview(body)[length:]


def read_elements(data: memoryview, count: int) -> Iterator[bytes]:
    """Yields the `count` elements of a BYTES tensor; InvalidRequest if the data does not match."""
    end = 0
    for _ in range(count):
        start = end + _SIZE.size
        if start > len(data):
            raise InvalidRequest(f"The binary data ends before its {count} elements do.")
        (size,) = _SIZE.unpack(data[end:start])
        end = start + size
        if end > len(data):
            raise InvalidRequest(f"The binary data ends before its {count} elements do.")
        yield bytes(data[start:end])
    if end != len(data):
        raise InvalidRequest(f"The binary data continues after its {count} elements.")


def read_floats(data: memoryview, shape: Sequence[int]) -> npt.NDArray[np.float32]:
    rows, columns = shape
    if len(data) != 4 * rows * columns:
        raise InvalidRequest(
            f"The binary data has {len(data):,} bytes; this shape needs {4 * rows * columns:,}."
        )
    return np.frombuffer(data, dtype="<f4").reshape(rows, columns).astype(np.float32)


def write_elements(texts: Sequence[str]) -> bytes:
    encoded = [text.encode() for text in texts]
    return b"".join(part for data in encoded for part in (_SIZE.pack(len(data)), data))
