"""Small images and archives, made in memory."""

import io
import tarfile
import zipfile
from collections.abc import Mapping

from PIL import Image

Color = str | tuple[int, ...]
ZIP = {"Content-Type": "application/zip"}
TAR = {"Content-Type": "application/x-tar"}


def image_bytes(
    format_: str, color: Color = "red", size: tuple[int, int] = (16, 12), mode: str = "RGB"
) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, color).save(out, format_)
    return out.getvalue()


def jpeg_bytes(color: Color = "red", size: tuple[int, int] = (16, 12)) -> bytes:
    return image_bytes("JPEG", color, size)


def png_bytes(color: Color = "red", size: tuple[int, int] = (16, 12)) -> bytes:
    return image_bytes("PNG", color, size)


def zip_of(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # A fixed date: the same files give the same bytes a second later.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tar_of(files: Mapping[str, bytes], *, compression: str = "") -> bytes:
    """`compression` is tarfile's: nothing, gz, bz2 or xz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
