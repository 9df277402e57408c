"""Small archives that cost a simple reader gigabytes or hours."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable

import zstandard

MiB = 1024 * 1024
_ZEROS = bytes(MiB)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "gz": lambda data: gzip.compress(data, 9),
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=1),
    "zst": zstandard.compress,
}


def tar_header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def pax(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    return tar_header("pax", len(records), kind) + padded(records)


def pax_record(key: str, value: bytes) -> bytes:
    body = f" {key}=".encode() + value + b"\n"
    length = len(body) + len(str(len(body)))
    length += len(str(length)) - len(str(len(body)))
    return str(length).encode() + body


def claiming(size: int, name: str = "__MACOSX/skipped") -> bytes:
    """A skipped member that claims this size, without data."""
    return pax(pax_record("size", str(size).encode())) + tar_header(name, 0) + bytes(1024)


def long_name(size: int) -> bytes:
    """GNU format: a member with the name of the next one."""
    name = b"n" * size + b"\x00"
    header = tar_header("././@LongLink", len(name), tarfile.GNUTYPE_LONGNAME)
    return header + padded(name) + tar_header("n", 0) + bytes(1024)


def long_pax(size: int, key: str = "comment") -> bytes:
    return pax(pax_record(key, b"v" * size)) + tar_header("a.png", 0) + bytes(1024)


def many_pax(count: int) -> bytes:
    """Python's own reader calls itself for each of them."""
    return pax(pax_record("path", b"a.png")) * count + tar_header("a.png", 0) + bytes(1024)


def sparse_map(blocks: int) -> bytes:
    """GNU's old format of sparse files: the map continues in further blocks."""
    first = bytearray(tar_header("a.png", 0, tarfile.GNUTYPE_SPARSE))
    first[386:482] = bytes(96)
    first[482] = 1
    first[148:156] = b" " * 8
    first[148:156] = b"%06o\x00 " % sum(first)
    entry = b"%011o\x00%011o\x00" % (1, 1)
    more = entry * 21 + b"\x01" + bytes(7)
    return bytes(first) + more * blocks + entry * 21 + bytes(8) + bytes(1024)


def sparse_size(size: int) -> bytes:
    """A few bytes that expand to this size, nearly all zeros."""
    records = [("major", b"1"), ("minor", b"0"), ("name", b"a.png"), ("realsize", b"%d" % size)]
    head = b"".join(pax_record(f"GNU.sparse.{key}", value) for key, value in records)
    return pax(head) + tar_header("a.png", 512) + padded(b"1\n0\n1\n") + bytes(1024)


def zip_bomb(method: int, size: int, name: str = "manifest.csv") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive, archive.open(name, "w") as member:
        for _ in range(size // MiB):
            member.write(_ZEROS)
    return out.getvalue()


def zip_of_entries(count: int, *, name: bytes = b"%07d.jpg", claimed: int | None = None) -> bytes:
    """Entries for the same image; the end record may claim fewer."""
    data = b"image"
    crc = zipfile.crc32(data)  # type: ignore[attr-defined]
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, crc, 5, 5, 1, 0) + b"i" + data
    out = io.BytesIO()
    out.write(local)
    for number in range(count):
        text = name % number if b"%" in name else name
        sizes = (crc, len(data), len(data), len(text), 0, 0, 0, 0, 0, 0)
        out.write(struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, *sizes) + text)
    size, claimed = out.tell() - len(local), count if claimed is None else claimed
    if claimed > 65_534:
        at = out.tell()
        numbers = (44, 45, 45, 0, 0, claimed, claimed, size, len(local))
        out.write(struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", *numbers))
        out.write(struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1))
        claimed = 0xFFFF
    out.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, claimed, claimed, size, len(local), 0))
    return out.getvalue()


def overlapping_zip(count: int, size: int) -> bytes:
    """Every entry unpacks the same deflated zeros."""
    one = zip_bomb(zipfile.ZIP_DEFLATED, size, "0.png")
    start = one.index(b"PK\x01\x02")
    directory = one[start : one.index(b"PK\x05\x06")] * count
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), start, 0)
    return one[:start] + directory + end


def xz_of_window(size: int) -> bytes:
    """A real tar whose decompressor needs a dictionary of this size."""
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 4096}]
    data = bytearray(lzma.compress(tar_header("a.png", 0) + bytes(1024), filters=filters))
    # the header of the block: its size, flags, the filter's id, size and dictionary, padding, CRC
    bits = next(b for b in range(41) if _xz_dictionary(b) >= size)
    data[16] = bits
    data[20:24] = struct.pack("<L", zipfile.crc32(bytes(data[12:20])))  # type: ignore[attr-defined]
    return bytes(data)


def _xz_dictionary(bits: int) -> int:
    return 2**32 - 1 if bits == 40 else (2 | bits & 1) << (bits // 2 + 11)


def zstd_of_window(log: int) -> bytes:
    """A frame whose header asks for a window of 2 ** log bytes, with one empty block."""
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(log - 10) << 3]) + b"\x01\x00\x00"


def empty_streams(kind: str, size: int) -> bytes:
    """Many empty compressed streams."""
    one = PACKERS[kind](b"")
    return one * (size // len(one))


def gzip_of_long_name(size: int) -> bytes:
    """A gzip header with a file name of this length."""
    return b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * size + b"\x00" + b"\x03\x00" + bytes(8)
