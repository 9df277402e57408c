"""A bucket of an S3-compatible store, with copies on this machine of what is mapped or sent."""

import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from app.core.platform.activity import report_activity
from app.core.platform.errors import StorageCorrupt, StorageUnavailable
from app.core.platform.settings import MiB
from app.core.storage.base import StoredFile, raise_if_full
from app.core.storage.batches import PutBatch
from app.core.storage.buckets import reason_of
from app.core.storage.cache import Cache
from app.core.storage.checksums import check_bytes, corrupt
from app.core.storage.keys import blob_hash
from app.core.storage.progress import ReportingBytes, ReportingFile

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta, PutMode
    from obstore.store import S3Store

_SHA256 = "sha256"  # name of the metadata that tells what the bytes must be
_PIECE = 64 * MiB  # of a large object: each has a time-out of its own
_BLOCK = 1 * MiB
_PARTS_AT_ONCE = 4
_PAGE = 1000
_TRIES = 5


class S3Storage:
    reads_at_once = 8  # an answer takes a while, and each holds an image in memory

    def __init__(self, bucket: "S3Store", cache: Cache, *, name: str, part_bytes: int) -> None:
        self._bucket = bucket
        self._cache = cache
        self._name = name
        self._part_bytes = part_bytes

    def path(self, key: str) -> Path:
        """A copy; the store is asked whether it still holds, unless the key tells its bytes."""
        _check_key(key)
        if sha256 := blob_hash(key):
            return self._cache.get(sha256, partial(self._download, key, None))
        for _ in range(_TRIES):
            found = self._head(key)
            name = self._copy_name(key, found["e_tag"])
            with suppress(PreconditionError):  # it was written anew in between
                return self._cache.get(name, partial(self._download, key, found))
        raise StorageUnavailable(f"The file {key} changes faster than it can be read.")

    def exists(self, key: str) -> bool:
        return self.stat(key) is not None

    def size(self, key: str) -> int:
        return self._head(key)["size"]

    def stat(self, key: str) -> StoredFile | None:
        try:
            return _stored(self._head(key))
        except FileNotFoundError:
            return None

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Every file whose key starts with `folder/`."""
        if folder:
            _check_key(folder)
        with _asking():
            for page in obstore.list(self._bucket, folder or None, chunk_size=_PAGE):
                yield from map(_stored, page)

    def read(self, key: str) -> bytes:
        _check_key(key)
        try:
            return self._read(key)
        except StorageCorrupt:
            return self._read(key)

    def _read(self, key: str) -> bytes:
        with _asking():
            answer = obstore.get(self._bucket, key)
            large = answer.meta["size"] > _PIECE
            data = b"".join(_blocks(answer)) if large else answer.bytes().to_bytes()
        check_bytes(key, data, blob_hash(key) or answer.attributes.get(_SHA256))
        return data

    def write(self, key: str, data: bytes) -> None:
        large = len(data) > self._part_bytes
        self._put(key, ReportingBytes(data) if large else data, hashlib.sha256(data).hexdigest())

    @contextmanager
    def writing(self, key: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """A file that appears under its key when the block ends well, and never otherwise."""
        _check_key(key)
        aside = self._cache.aside / uuid4().hex
        try:
            with aside.open("w+b") as file:
                yield file
            self._send(key, aside, "overwrite" if replace else "create")
        except OSError as error:
            raise_if_full(error)
            raise
        finally:
            aside.unlink(missing_ok=True)

    def move_in(self, key: str, path: Path) -> None:
        """Move a finished file of this machine to its key."""
        self._send(key, path, "overwrite")
        path.unlink(missing_ok=True)

    def batch(self) -> PutBatch:
        return PutBatch(self.write)

    def touch(self, key: str) -> bool:
        """Never: to write a file again takes one request, and to look for it first one more."""
        _check_key(key)
        return False

    def delete(self, key: str) -> None:
        _check_key(key)
        if sha256 := blob_hash(key):
            self._cache.forget(sha256)
        with _asking(), suppress(FileNotFoundError):
            obstore.delete(self._bucket, key)

    def delete_folder(self, key: str) -> None:
        """Every file whose key starts with `key/`; it may be gone already."""
        _check_key(key)
        if found := [file.key for file in self.list(key)]:
            with _asking():
                obstore.delete(self._bucket, found)

    def delete_unless_young(self, key: str, before: float) -> bool:
        """Whole seconds are all that the store tells: the one that has begun counts as young."""
        found = self.stat(key)
        if found is not None and found.modified + 1 > before:
            return False
        self.delete(key)
        return True

    def clean(self, older_than_seconds: float, now: float) -> int:
        """Remove what crashed writers left aside on this machine."""
        aside = self._cache.aside.iterdir()
        stale = [p for p in aside if now - p.stat().st_mtime > older_than_seconds]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)

    def _head(self, key: str) -> "ObjectMeta":
        _check_key(key)
        with _asking():
            return obstore.head(self._bucket, key)

    def _send(self, key: str, path: Path, mode: "PutMode") -> None:
        """And keep the file as a copy: whoever wrote it is the next to read it."""
        with ReportingFile(path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        try:
            with ReportingFile(path) as file:
                e_tag = self._put(key, file, sha256, mode)
        except AlreadyExistsError:
            return
        if path.stat().st_dev == self._cache.aside.stat().st_dev:
            self._cache.adopt(path, blob_hash(key) or self._copy_name(key, e_tag))

    def _put(
        self, key: str, data: bytes | IO[bytes], sha256: str, mode: "PutMode" = "overwrite"
    ) -> str | None:
        """One request, or one for each part of a large file; returns the entity tag."""
        _check_key(key)
        try:
            with _asking():
                put = obstore.put(
                    self._bucket,
                    key,
                    data,
                    attributes={_SHA256: sha256},
                    mode=mode,
                    chunk_size=self._part_bytes,
                    max_concurrency=_PARTS_AT_ONCE,
                )
        except FileNotFoundError as error:
            raise StorageUnavailable("The bucket of the storage does not exist.") from error
        return put["e_tag"]

    def _download(self, key: str, found: "ObjectMeta | None", target: Path) -> None:
        try:
            self._download_once(key, found, target)
        except StorageCorrupt:
            self._download_once(key, found, target)

    def _download_once(self, key: str, found: "ObjectMeta | None", target: Path) -> None:
        digest, expected = hashlib.sha256(), blob_hash(key)
        try:
            with target.open("wb") as file:
                for options in _pieces(found):
                    with _asking():
                        answer = obstore.get(self._bucket, key, options=options)
                        expected = expected or answer.attributes.get(_SHA256)
                        for block in _blocks(answer):
                            digest.update(block)
                            file.write(block)
        except OSError as error:
            raise_if_full(error)
            raise
        if expected is not None and digest.hexdigest() != expected:
            raise corrupt(key)

    def _copy_name(self, key: str, e_tag: str | None) -> str:
        return hashlib.sha256(f"{self._name}\n{key}\n{e_tag}".encode()).hexdigest()


def _pieces(found: "ObjectMeta | None") -> "Iterator[GetOptions]":
    """A large object in ranges, all of the same version."""
    if found is None:
        yield {}
        return
    size, same = found["size"], found["e_tag"]
    if size <= _PIECE:
        yield {"if_match": same}
        return
    for start in range(0, size, _PIECE):
        yield {"if_match": same, "range": (start, min(start + _PIECE, size))}


def _blocks(answer: "GetResult") -> Iterator[bytes]:
    for block in answer.stream(_BLOCK):
        report_activity()
        yield block


def _stored(found: "ObjectMeta") -> StoredFile:
    return StoredFile(found["path"], found["size"], found["last_modified"].timestamp())


def _check_key(key: str) -> None:
    if any(part in ("", ".", "..") for part in key.split("/")):
        raise ValueError(f"key leaves the storage folder: {key!r}")


@contextmanager
def _asking() -> Iterator[None]:
    """A server that is gone or refuses us is one error, whatever the library calls it."""
    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except FileNotFoundError:  # the library's words fill a page
        raise FileNotFoundError(errno.ENOENT, "There is no such file in the storage") from None
    except BaseError as error:
        raise StorageUnavailable(f"The storage cannot be used: {reason_of(error)}") from error
