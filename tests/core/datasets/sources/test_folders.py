"""Folders of the server: their files, and links that leave them."""

import os
from pathlib import Path

import pytest

from app.core.datasets.sources.folders import check_folder, check_path, list_folder, read_file
from app.core.platform.errors import (
    ImageTooLarge,
    InvalidRequest,
    SourceForbidden,
    SourceUnreadable,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "b").mkdir(parents=True)
    for name in ("b/2.jpg", "b/1.jpg", "a.jpg", "c.jpg"):
        (folder / name).write_bytes(name.encode())
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "photos-private").mkdir()
    return folder


def test_files_are_sorted_and_hidden_ones_skipped(root: Path) -> None:
    (root / ".git").mkdir()
    for name in (".git/x", ".hidden", "Thumbs.db", "b/.DS_Store", "._a.jpg"):
        (root / name).write_bytes(b"x")
    os.mkfifo(root / "pipe")
    (root / "circle").symlink_to(root)
    assert list(list_folder(str(root), [root])) == ["a.jpg", "b/1.jpg", "b/2.jpg", "c.jpg"]


def test_names_that_are_not_utf8(root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.jpg")).write_bytes(b"x")
    names = list(list_folder(str(root), [root]))
    assert read_file(f"{root}/{names[-1]}", [root], 10) == b"x"


def test_a_folder_below_a_root(root: Path) -> None:
    assert check_folder(str(root), [root]) == str(root)
    assert check_folder(f"{root}/b/../b/", [root]) == str(root / "b")
    with pytest.raises(InvalidRequest, match="not a folder"):
        check_folder(f"{root}/a.jpg", [root])


@pytest.mark.parametrize(
    "path", ["/", "/etc", "{root}/..", "{root}-private", "photos", "", "{root}\x00", "{root}/out"]
)
def test_folders_elsewhere_are_forbidden(root: Path, path: str) -> None:
    (root / "out").symlink_to("/etc")
    with pytest.raises(SourceForbidden):
        check_folder(path.format(root=root), [root])
    with pytest.raises(SourceForbidden):
        check_folder(str(root), [])


def test_a_path_is_checked_before_it_is_read(root: Path) -> None:
    check_path(f"{root}/a.jpg", [root])
    for path in (f"{root}/../secret", "a.jpg", "/etc/passwd"):
        with pytest.raises(SourceForbidden):
            check_path(path, [root])


def test_a_link_out_of_the_folder_is_refused(root: Path) -> None:
    (root / "in.jpg").symlink_to(root / "a.jpg")
    (root / "out.jpg").symlink_to(root.parent / "secret")
    (root / "folder").symlink_to(root.parent)
    assert read_file(f"{root}/in.jpg", [root], 10) == b"a.jpg"
    for name in ("out.jpg", "folder/secret", "../secret"):
        with pytest.raises(SourceForbidden):
            read_file(f"{root}/{name}", [root], 10)


def _swap_after_check(
    monkeypatch: pytest.MonkeyPatch, path: Path, target: Path, *, back: bool
) -> None:
    """Replaces a path by a link after it was resolved; with `back`, also before."""
    real = os.path.realpath

    def resolve(asked: str, **options: bool) -> str:
        found = real(asked, **options)
        if str(path) in str(asked):
            moved = path.with_name("moved")
            if not moved.exists():
                path.rename(moved)
                path.symlink_to(target)
        return found

    if back:
        path.rename(path.with_name("kept"))
        path.symlink_to(target)

        def resolve_and_return(asked: str, **options: bool) -> str:
            if str(path) not in str(asked):
                return real(asked, **options)
            path.unlink(missing_ok=True)
            path.with_name("kept").rename(path)
            found = real(asked, **options)
            path.rename(path.with_name("kept"))
            path.symlink_to(target)
            return found

        monkeypatch.setattr(os.path, "realpath", resolve_and_return)
    else:
        monkeypatch.setattr(os.path, "realpath", resolve)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("swapped", ["a.jpg", "b"])
def test_a_path_that_becomes_a_link_after_it_was_checked(
    root: Path, monkeypatch: pytest.MonkeyPatch, swapped: str, back: bool
) -> None:
    """Also if it left the folder before the check, and does again after it."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "1.jpg").write_bytes(b"secret")
    target = outside if swapped == "b" else root.parent / "secret"
    asked = root / ("b/1.jpg" if swapped == "b" else swapped)
    _swap_after_check(monkeypatch, root / swapped, target, back=back)
    with pytest.raises(SourceUnreadable):
        read_file(str(asked), [root], 10)


def test_a_folder_that_becomes_a_link_is_not_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret name.jpg").write_bytes(b"secret")
    _swap_after_check(monkeypatch, root / "b", outside, back=False)
    with pytest.raises(SourceUnreadable):
        list(list_folder(str(root / "b"), [root]))


def test_unreadable_files(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "broken").symlink_to(root / "nothing")
    for name in ("gone.jpg", "pipe", "b", "broken"):
        with pytest.raises(SourceUnreadable):
            read_file(f"{root}/{name}", [root], 10)
    with pytest.raises(ImageTooLarge):
        read_file(f"{root}/a.jpg", [root], 4)
