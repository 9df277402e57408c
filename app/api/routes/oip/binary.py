"""Tensors as bytes, in the form of the protocol's binary extension: little-endian, row by row."""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from app.core.platform.errors import InvalidRequest

HEADER = "Inference-Header-Content-Length"  # of the JSON that comes before the tensors
_SIZE = struct.Struct("<I")  # before each element of BYTES


def split(body: bytes, header: str | None) -> tuple[bytes, memoryview]:
    """The JSON, and what follows it."""
    if header is None:
        return body, memoryview(b"")
    length = int(header) if header.isdecimal() and len(header) < 19 else None
    if length is None or length > len(body):
        raise InvalidRequest.field(
            HEADER, f"must be the length of the JSON, within the {len(body):,} bytes of the body"
        )
    return body[:length], memoryview(body)[length:]


def read_elements(data: memoryview, count: int) -> Iterator[bytes]:
    """The elements of a BYTES tensor, which must be `count` and fill the data."""
    at = 0
    for _ in range(count):
        start = at + _SIZE.size
        if start > len(data):
            raise InvalidRequest(f"The binary data ends before its {count} elements do.")
        (size,) = _SIZE.unpack(data[at:start])
        at = start + size
        if at > len(data):
            raise InvalidRequest(f"The binary data ends before its {count} elements do.")
        yield bytes(data[start:at])
    if at != len(data):
        raise InvalidRequest(f"The binary data goes on after its {count} elements.")


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
