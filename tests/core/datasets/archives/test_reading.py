"""Members of archives, and those that are skipped."""

import io
import tarfile
import zipfile

import pytest

from app.core.datasets.archives import (
    check_archive,
    member_count,
    read_members,
)
from app.core.platform.errors import (
    DatasetEmpty,
    ImageTooLarge,
    ImageUndecodable,
)
from tests.core.datasets.archives.archive_files import (
    KINDS,
    LIMITS,
    Write,
    archive_of,
    contents,
    tar_with,
)
from tests.images import tar_of


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_in_order(write: Write, kind: str) -> None:
    files = {
        f"{letter}/{number}.png": f"{letter}{number}".encode()
        for number in (2, 1)
        for letter in "ba"
    }
    path = write(archive_of(kind, files))
    check_archive(path, LIMITS)
    expected = [(i, name, data) for i, (name, data) in enumerate(files.items())]
    assert contents(path) == expected


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_may_be_empty(write: Write, kind: str) -> None:
    assert contents(write(archive_of(kind, {}))) == []


def test_a_zip_of_system_files_is_empty(write: Write) -> None:
    names = ["__MACOSX/._a.png", "a/.DS_Store", "Thumbs.db", "a\\desktop.ini", "a/._b.png"]
    path = write(archive_of("zip", {name: b"junk" for name in names}))
    with pytest.raises(DatasetEmpty):
        check_archive(path, LIMITS)


def test_folders_are_not_members(write: Write) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.mkdir("folder")
        archive.writestr("folder/a.png", b"a")
    path = write(out.getvalue())
    assert [name for _, name, _ in contents(path)] == ["folder/a.png"]
    assert member_count(path) == 2


def test_the_count_of_a_tar_is_not_known_beforehand(write: Write) -> None:
    assert member_count(write(tar_of({"a": b"a"}))) == 0


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_only_the_too_large_member_is_refused(write: Write, kind: str) -> None:
    files = {"a.png": b"a", "big.png": bytes(range(256)) * 4097, "c.png": b"c"}
    read = []
    for member in read_members(write(archive_of(kind, files)), LIMITS):
        if member.name == "big.png":
            with pytest.raises(ImageTooLarge, match="1,048,576 bytes"):
                member.read()
        else:
            read.append((member.position, member.read()))
    assert read == [(0, b"a"), (2, b"c")]


def test_only_the_member_with_a_bad_checksum_is_refused(write: Write) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in "abc":
            archive.writestr(f"{name}.png", name.encode() * 100)
    data = out.getvalue().replace(b"b" * 100, b"b" * 99 + b"x")
    read = []
    for member in read_members(write(data), LIMITS):
        if member.name == "b.png":
            with pytest.raises(ImageUndecodable, match="cannot be unpacked"):
                member.read()
        else:
            read.append(member.read()[:1])
    assert read == [b"a", b"c"]


def test_members_may_be_skipped(write: Write) -> None:
    for kind in KINDS:
        path = write(archive_of(kind, {f"{i}.png": bytes([i]) for i in range(5)}))
        read = [member.read() for member in read_members(path, LIMITS) if member.position > 2]
        assert read == [b"\x03", b"\x04"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_are_kept_as_they_are(write: Write, kind: str) -> None:
    names = [
        "写真/ねこ.jpg",
        "Grüße & Küsse.png",
        "a" * 3000 + ".png",
        "  spaced .png",
        "emoji 🐈.png",
    ]
    files = {name: b"x" for name in names}
    assert [name for _, name, _ in contents(write(archive_of(kind, files)))] == names


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names_are_kept(write: Write) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("same.png", b"first")
        archive.writestr("same.png", b"second")
    expected = [(0, "same.png", b"first"), (1, "same.png", b"second")]
    assert contents(write(out.getvalue())) == expected


def test_a_name_in_another_encoding_becomes_text(write: Write) -> None:
    """Names must be storable: databases refuse unpaired surrogates and zeros."""
    data = tar_of({"caf\udce9.png": b"x"})
    (_, name, _), *_ = contents(write(data))
    assert name.startswith("caf")
    name.encode()


def test_a_zero_in_a_name_is_dropped(write: Write) -> None:
    info = tarfile.TarInfo("short.png")
    info.pax_headers = {"path": "a\x00b.png"}
    ((_, name, _),) = contents(write(tar_with(info)))
    assert "\x00" not in name
