"""Archives that are refused: unsafe, damaged, or too large when unpacked."""

import gzip
import io
import os
import struct
import tarfile
import zipfile

import pytest
import zstandard

from app.core.datasets.archives import (
    archive_kind,
    check_archive,
    is_archive_head,
    member_count,
    read_members,
)
from app.core.platform.errors import (
    ArchiveInvalid,
    ArchiveTooLarge,
    ArchiveUnsafePath,
    ImageUndecodable,
)
from tests.core.datasets.archives.archive_files import (
    LIMITS,
    MiB,
    Write,
    archive_of,
    contents,
    tar_with,
)
from tests.images import tar_of, zip_of


def _zip_with(info: zipfile.ZipInfo, data: bytes = b"x") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(info, data)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize(
    "name",
    [
        "../evil.png",
        "a/../../evil.png",
        "/etc/passwd",
        "..\\evil.png",
        "\\evil.png",
        "C:\\evil.png",
    ],
)
def test_names_that_point_outside_are_refused(write: Write, kind: str, name: str) -> None:
    path = write(archive_of(kind, {"good.png": b"x", name: b"x"}))
    with pytest.raises(ArchiveUnsafePath) as caught:
        contents(path)
    assert caught.value.code == "archive_unsafe_path"
    if kind == "zip":  # known before a worker reads it
        with pytest.raises(ArchiveUnsafePath):
            check_archive(path, LIMITS)


def test_a_symbolic_link_in_a_zip_is_refused(write: Write) -> None:
    info = zipfile.ZipInfo("link.png")
    info.external_attr = 0o120777 << 16
    with pytest.raises(ArchiveUnsafePath, match="link"):
        check_archive(write(_zip_with(info, b"/etc/passwd")), LIMITS)


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE],
)
def test_links_and_devices_in_a_tar_are_refused(write: Write, kind: bytes) -> None:
    info = tarfile.TarInfo("thing.png")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(ArchiveUnsafePath, match="link or a device"):
        contents(write(tar_with(info)))


def test_an_encrypted_zip_is_refused(write: Write) -> None:
    data = bytearray(zip_of({"a.png": b"secret"}))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + offset] |= 1
    with pytest.raises(ArchiveInvalid, match="encrypted"):
        check_archive(write(bytes(data)), LIMITS)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"just text", id="text"),
        pytest.param(b"\x89PNG\r\n\x1a\n", id="an image"),
        pytest.param(b"Rar!\x1a\x07\x00", id="rar"),
    ],
)
def test_other_files_than_archives_are_refused(write: Write, data: bytes) -> None:
    assert not is_archive_head(data)
    for use in (archive_kind, member_count, lambda path: check_archive(path, LIMITS), contents):
        with pytest.raises(ArchiveInvalid, match="neither a zip nor a tar"):
            use(write(data))


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_truncated_archive_is_invalid(write: Write, kind: str, kept: float) -> None:
    data = archive_of(kind, {f"{i}.bin": os.urandom(5000) for i in range(20)})
    with pytest.raises(ArchiveInvalid):
        contents(write(data[: int(len(data) * kept)]))


def test_a_zstd_cut_between_members_is_invalid(write: Write) -> None:
    """Its decompressor does not notice; the end of the tar is missing."""
    whole = tar_of({"a.bin": bytes(100), "b.bin": bytes(100)})
    with pytest.raises(ArchiveInvalid, match="truncated"):
        contents(write(zstandard.compress(whole[:1024])))


def test_a_tar_cut_inside_a_member_is_invalid(write: Write) -> None:
    with pytest.raises(ArchiveInvalid):
        contents(write(tar_of({"a.bin": bytes(5000)})[:2000]))


def test_a_damaged_listing_is_invalid(write: Write) -> None:
    data = bytearray(zip_of({"a.png": b"a"}))
    data[data.index(b"PK\x01\x02")] ^= 0xFF
    path = write(bytes(data))
    with pytest.raises(ArchiveInvalid, match="damaged"):
        check_archive(path, LIMITS)
    with pytest.raises(ArchiveInvalid, match="damaged"):
        contents(path)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_too_many_members(write: Write, kind: str) -> None:
    files = {f"{i}.png": b"" for i in range(101)}
    with pytest.raises(ArchiveTooLarge, match="more than 100 members") as caught:
        contents(write(archive_of(kind, files)))
    assert caught.value.code == "archive_too_large"


def test_a_zip_of_too_many_members_is_refused_at_once(write: Write) -> None:
    with pytest.raises(ArchiveTooLarge):
        check_archive(write(zip_of({f"{i}.png": b"" for i in range(101)})), LIMITS)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_bomb_is_stopped_by_its_unpacked_bytes(write: Write, kind: str) -> None:
    path = write(archive_of(kind, {f"{i}.png": bytes(MiB) for i in range(40)}))
    assert path.stat().st_size < MiB
    seen: list[int] = []
    with pytest.raises(ArchiveTooLarge, match="100 times its size"):
        seen.extend(len(member.read()) for member in read_members(path, LIMITS))
    assert sum(seen) <= 17 * MiB + path.stat().st_size * 100


def test_a_bomb_with_a_forged_size_is_stopped(write: Write) -> None:
    data = bytearray(zip_of({f"{i}.png": bytes(MiB) for i in range(40)}))
    position = 0
    while (position := data.find(b"PK\x01\x02", position)) >= 0:
        struct.pack_into("<I", data, position + 24, 10)  # ten bytes, it says
        position += 4
    total = 0
    try:
        for member in read_members(write(bytes(data)), LIMITS):
            try:
                total += len(member.read())
            except ImageUndecodable:
                total += 10
    except ArchiveTooLarge:
        pass
    assert total <= 17 * MiB


@pytest.mark.parametrize("name", ["__MACOSX/big.bin", "a/.DS_Store"])
def test_a_bomb_in_a_skipped_member_is_stopped(write: Write, name: str) -> None:
    files = {name: bytes(40 * MiB), "a.png": b"a"}
    with pytest.raises(ArchiveTooLarge):
        contents(write(tar_of(files, compression="gz")))


def test_a_bomb_in_a_header_is_stopped(write: Write) -> None:
    """Tar's extended headers are read whole into memory."""
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 40 * MiB
    data = gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + bytes(info.size), 1)
    with pytest.raises(ArchiveTooLarge):
        contents(write(data))
