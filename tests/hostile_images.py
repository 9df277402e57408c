"""Small files that cost far more to decode than their size suggests."""

import io
import struct
import zlib

from PIL import Image


def jpeg_of_scans(scans: int, side: int = 64) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    out = io.BytesIO()
    Image.linear_gradient("L").resize((side, side)).convert("RGB").save(
        out, "JPEG", progressive=True
    )
    data = out.getvalue()
    last = data.rindex(b"\xff\xda")
    end = data.rindex(b"\xff\xd9")
    own = data.count(b"\xff\xda")
    return data[:end] + data[last:end] * (scans - own) + data[end:]


def tiff_of_pages(pages: int) -> bytes:
    """Every page is the same pixel."""
    tags = [(256, 1), (257, 1), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1)]
    tags.append((279, 1))
    size = 2 + 12 * len(tags) + 4
    first = 12
    out = [struct.pack("<2sHII", b"II", 42, first, 0x80)]
    for page in range(pages):
        following = first + (page + 1) * size if page + 1 < pages else 0
        out.append(struct.pack("<H", len(tags)))
        out += [struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags]
        out.append(struct.pack("<I", following))
    return b"".join(out)


def deep_png(side: int) -> bytes:
    """Sixteen bits a pixel, all of them zero."""
    row = bytes(1 + 2 * side)
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def webp_claiming(width: int, height: int) -> bytes:
    """Lossless and of one color: a large size in the header, and few bytes of data."""
    out = io.BytesIO()
    Image.new("RGB", (16, 16)).save(out, "WEBP", lossless=True)
    data = bytearray(out.getvalue())
    assert data[12:16] == b"VP8L"
    data[21:25] = ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
    return bytes(data)
