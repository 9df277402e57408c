"""A damaged backup is refused before anything is restored."""

import io
import random
import tarfile
from pathlib import Path

import pytest

from app.core.backup.archive import ArchiveWriter, read_members, verify
from app.core.backup.create import create_backup
from app.core.backup.restore import restore_backup
from app.core.platform.errors import BackupInvalid
from tests.core.backup.instances import MakeInstance, fill, rows


def _write(path: Path, members: dict[str, bytes]) -> None:
    with path.open("wb") as file:
        archive = ArchiveWriter(file)
        for name, data in members.items():
            archive.add(name, data)
        archive.finish({"made": "for a test"})


def test_what_was_written_is_read(tmp_path: Path) -> None:
    members = {f"a/{number}": b"%d" % number for number in range(2_500)}  # three indexes
    _write(tmp_path / "a.tar", members)
    about = verify(tmp_path / "a.tar")
    assert about["made"] == "for a test"
    assert len(about["indexes"]) == 3
    read = {member.name: member.file.read() for member in read_members(tmp_path / "a.tar")}
    assert read == members
    with tarfile.open(tmp_path / "a.tar") as tar:  # any program can look into it
        assert "manifest.json" in tar.getnames()


def test_every_truncation_is_detected(tmp_path: Path) -> None:
    _write(tmp_path / "a.tar", {"a": b"x" * 700, "b": b"y"})
    whole = (tmp_path / "a.tar").read_bytes()
    end = len(whole.rstrip(b"\0"))
    for length in (0, 100, 512, 1_000, 1_536, end // 2, end - 1):
        (tmp_path / "cut.tar").write_bytes(whole[:length])
        with pytest.raises(BackupInvalid):
            verify(tmp_path / "cut.tar")


def test_every_changed_byte_is_detected_or_harmless(
    make_instance: MakeInstance, tmp_path: Path
) -> None:
    full, empty = make_instance("full", "sqlite"), make_instance("empty", "sqlite")
    fill(full)
    create_backup(full.db, full.storage, tmp_path / "b.tar")
    whole = (tmp_path / "b.tar").read_bytes()
    manifest = verify(tmp_path / "b.tar")
    contents = [member.file.read() for member in read_members(tmp_path / "b.tar")]
    refused, nothing = 0, rows(empty)
    for place in random.Random(0).sample(range(len(whole)), 60):
        changed = bytearray(whole)
        changed[place] ^= 1
        damaged = tmp_path / "damaged.tar"
        damaged.write_bytes(changed)
        try:
            assert verify(damaged) == manifest
            assert [member.file.read() for member in read_members(damaged)] == contents
        except BackupInvalid:
            refused += 1
            with pytest.raises(BackupInvalid):
                restore_backup(empty.db, empty.storage, damaged)
    assert refused > 40
    assert rows(empty) == nothing
    assert list(empty.storage.list("models")) == []


@pytest.mark.parametrize("data", [b"", b"no tar at all" * 100, b"PK\x03\x04" + b"0" * 2_000])
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(data)
    with pytest.raises(BackupInvalid):
        verify(tmp_path / "a.tar")


def test_links_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        link = tarfile.TarInfo("files/models/x")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(BackupInvalid, match="not a file"):
        verify(tmp_path / "a.tar")


def test_members_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    _write(tmp_path / "a.tar", {"a": b"1"})
    with tarfile.open(tmp_path / "a.tar", "a") as tar:
        late = tarfile.TarInfo("b")
        late.size = 1
        tar.addfile(late, io.BytesIO(b"2"))
    with pytest.raises(BackupInvalid, match="after its manifest"):
        verify(tmp_path / "a.tar")


@pytest.mark.parametrize("revision", ["9999", "none"])
def test_a_backup_of_a_later_release_is_refused(
    make_instance: MakeInstance, tmp_path: Path, revision: str
) -> None:
    empty = make_instance("empty", "sqlite")
    with (tmp_path / "a.tar").open("wb") as file:
        ArchiveWriter(file).finish({"revision": revision, "tables": {}})
    with pytest.raises(BackupInvalid, match="later release"):
        restore_backup(empty.db, empty.storage, tmp_path / "a.tar")


def test_a_file_of_unknown_kind_is_refused(make_instance: MakeInstance, tmp_path: Path) -> None:
    empty = make_instance("empty", "sqlite")
    with (tmp_path / "a.tar").open("wb") as file:
        archive = ArchiveWriter(file)
        archive.add("files/../escaped", b"x")
        archive.finish({"revision": "0001", "tables": {}})
    with pytest.raises(BackupInvalid, match="unknown kind"):
        restore_backup(empty.db, empty.storage, tmp_path / "a.tar")
    assert not (tmp_path / "escaped").exists()
