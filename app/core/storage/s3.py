"""Storage in an S3-compatible bucket, with a local cache of files that are mapped or sent."""

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
from app.core.storage.base import (
    StoredFile,
    check_sha256,
    corrupt,
    delete_old_files,
    raise_if_full,
)
from app.core.storage.buckets import reason_of
from app.core.storage.cache import Cache
from app.core.storage.keys import blob_hash
from app.core.storage.s3_put import PutBatch, ReportingBytes, ReportingFile

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta, PutMode
    from obstore.store import S3Store

_SHA256 = "sha256"  # the metadata field with the hash of the bytes
_RANGE_BYTES = 64 * MiB  # of a large object: each range has its own timeout
_BLOCK = 1 * MiB
_CONCURRENT_PARTS = 4
_PAGE = 1000
_TRIES = 5


class S3Storage:
    reads_at_once = 8  # hides the latency; each holds an image in memory

    def __init__(self, bucket: "S3Store", cache: Cache, *, name: str, part_bytes: int) -> None:
        self._bucket = bucket
        self._cache = cache
        self._name = name
        self._part_bytes = part_bytes

    def path(self, key: str) -> Path:
        """A cached copy; the ETag is checked, unless the key is the hash of the bytes."""
        _check_key(key)
        if sha256 := blob_hash(key):
            return self._cache.get(sha256, partial(self._download, key, None))
        for _ in range(_TRIES):
            found = self._head(key)
            name = self._cache_name(key, found["e_tag"])
            with suppress(PreconditionError):  # it was written again in between
                return self._cache.get(name, partial(self._download, key, found))
        raise StorageUnavailable(f"The file {key} changed during each of {_TRIES} reads; retry.")

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
        with _translated_errors():
            for page in obstore.list(self._bucket, folder or None, chunk_size=_PAGE):
                yield from map(_stored, page)

    def read(self, key: str) -> bytes:
        _check_key(key)
        try:
            return self._read(key)
        except StorageCorrupt:
            return self._read(key)

    def _read(self, key: str) -> bytes:
        with _translated_errors():
            result = obstore.get(self._bucket, key)
            large = result.meta["size"] > _RANGE_BYTES
            data = b"".join(_blocks(result)) if large else result.bytes().to_bytes()
        check_sha256(key, data, blob_hash(key) or result.attributes.get(_SHA256))
        return data

    def write(self, key: str, data: bytes) -> None:
        large = len(data) > self._part_bytes
        self._put(key, ReportingBytes(data) if large else data, hashlib.sha256(data).hexdigest())

    @contextmanager
    def writing(self, key: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """A file that is stored under its key if the block ends without an error."""
        _check_key(key)
        temporary = self._cache.temporary_dir / uuid4().hex
        try:
            with temporary.open("w+b") as file:
                yield file
            self._send(key, temporary, "overwrite" if replace else "create")
        except OSError as error:
            raise_if_full(error)
            raise
        finally:
            temporary.unlink(missing_ok=True)

    def move_in(self, key: str, path: Path) -> None:
        """Moves a finished local file to its key."""
        self._send(key, path, "overwrite")
        path.unlink(missing_ok=True)

    def batch(self) -> PutBatch:
        return PutBatch(self.write)

    def touch(self, key: str) -> bool:
        """Always False: writing a file again takes one request, checking for it first takes two."""
        _check_key(key)
        return False

    def delete(self, key: str) -> None:
        _check_key(key)
        if sha256 := blob_hash(key):
            self._cache.forget(sha256)
        with _translated_errors(), suppress(FileNotFoundError):
            obstore.delete(self._bucket, key)

    def delete_folder(self, key: str) -> None:
        """Deletes every file whose key starts with `key/`, if there are any."""
        _check_key(key)
        if found := [file.key for file in self.list(key)]:
            with _translated_errors():
                obstore.delete(self._bucket, found)

    def delete_unless_young(self, key: str, before: float) -> bool:
        """The store has times in whole seconds, so a file counts as one second younger."""
        found = self.stat(key)
        if found is not None and found.modified + 1 > before:
            return False
        self.delete(key)
        return True

    def clean(self, older_than_seconds: float, now: float) -> int:
        """Deletes temporary files that crashed writers left on this machine."""
        return delete_old_files(self._cache.temporary_dir, now - older_than_seconds)

    def _head(self, key: str) -> "ObjectMeta":
        _check_key(key)
        with _translated_errors():
            return obstore.head(self._bucket, key)

    def _send(self, key: str, path: Path, mode: "PutMode") -> None:
        """Sends a local file and moves it into the cache: its writer is likely to read it next."""
        with ReportingFile(path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        try:
            with ReportingFile(path) as file:
                e_tag = self._put(key, file, sha256, mode)
        except AlreadyExistsError:
            return
        if path.stat().st_dev == self._cache.temporary_dir.stat().st_dev:
            self._cache.adopt(path, blob_hash(key) or self._cache_name(key, e_tag))

    def _put(
        self, key: str, data: bytes | IO[bytes], sha256: str, mode: "PutMode" = "overwrite"
    ) -> str | None:
        """One request, or one for each part of a large file; returns the entity tag."""
        _check_key(key)
        try:
            with _translated_errors():
                put = obstore.put(
                    self._bucket,
                    key,
                    data,
                    attributes={_SHA256: sha256},
                    mode=mode,
                    chunk_size=self._part_bytes,
                    max_concurrency=_CONCURRENT_PARTS,
                )
        except FileNotFoundError as error:
            raise StorageUnavailable(
                "The bucket of TEMI_STORAGE_URL does not exist; create it."
            ) from error
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
                for options in _ranges(found):
                    with _translated_errors():
                        result = obstore.get(self._bucket, key, options=options)
                        expected = expected or result.attributes.get(_SHA256)
                        for block in _blocks(result):
                            digest.update(block)
                            file.write(block)
        except OSError as error:
            raise_if_full(error)
            raise
        if expected is not None and digest.hexdigest() != expected:
            raise corrupt(key)

    def _cache_name(self, key: str, e_tag: str | None) -> str:
        return hashlib.sha256(f"{self._name}\n{key}\n{e_tag}".encode()).hexdigest()


def _ranges(found: "ObjectMeta | None") -> "Iterator[GetOptions]":
    """The requests that read an object: one, or ranges of the same version."""
    if found is None:
        yield {}
        return
    size, e_tag = found["size"], found["e_tag"]
    if size <= _RANGE_BYTES:
        yield {"if_match": e_tag}
        return
    for start in range(0, size, _RANGE_BYTES):
        yield {"if_match": e_tag, "range": (start, min(start + _RANGE_BYTES, size))}


def _blocks(result: "GetResult") -> Iterator[bytes]:
    for block in result.stream(_BLOCK):
        report_activity()
        yield block


def _stored(found: "ObjectMeta") -> StoredFile:
    return StoredFile(found["path"], found["size"], found["last_modified"].timestamp())


def _check_key(key: str) -> None:
    if any(part in ("", ".", "..") for part in key.split("/")):
        raise ValueError(f"key leaves the storage folder: {key!r}")


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raises StorageUnavailable for every error of the library but missing and changed files."""
    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except FileNotFoundError:  # the library's message fills a page
        raise FileNotFoundError(errno.ENOENT, "There is no such file in the storage") from None
    except BaseError as error:
        raise StorageUnavailable(f"The storage cannot be used: {reason_of(error)}") from error
