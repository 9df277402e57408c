"""Waits until files are on the disk: one by one, or all of a file system at once."""

import ctypes
import os
import re
import sys
import weakref
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

_CONCURRENT_SYNCS = 16
# Older kernels do not report errors of writing by syncfs(2), only by fsync(2).
_REPORTS_ERRORS = (5, 8)
# File systems whose syncfs(2) waits for the disk. That of FUSE does nothing, and that of others,
# such as overlays and network file systems, depends on what they are mounted on.
_WAITS = {
    0xEF53: "ext4",
    0x58465342: "XFS",
    0x9123683E: "btrfs",
    0xF2F52010: "F2FS",
    0x01021994: "tmpfs",
}
_STATFS_BYTES = 512  # more than the struct has


class GroupSync:
    """Syncs every file of a file system, at about the cost of a few single files.

    Create it before the first write: the kernel reports all errors of writing since then.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.open(folder, os.O_RDONLY)
        weakref.finalize(self, os.close, self._folder)

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """None where files must be synced one by one."""
        if sys.platform != "linux" or _kernel() < _REPORTS_ERRORS:
            return None
        opened = cls(folder)
        return opened if opened._kind() in _WAITS else None

    def sync(self) -> None:
        _check(_libc().syncfs(self._folder))

    def _kind(self) -> int:
        found = ctypes.create_string_buffer(_STATFS_BYTES)
        _check(_libc().fstatfs(self._folder, found))
        return ctypes.c_long.from_buffer(found).value & 0xFFFFFFFF  # its first field


def sync_all(paths: Collection[Path | str]) -> None:
    """Concurrently: the file system then writes many of them in one commit of its journal."""
    if paths:
        with ThreadPoolExecutor(min(len(paths), _CONCURRENT_SYNCS)) as pool:
            list(pool.map(sync, paths))  # raises the error of the first that failed


def sync(path: Path | str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _kernel() -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return tuple(map(int, found.groups())) if found else (0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)  # releases the GIL during a call


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
