"""Files from the service: streamed to disk, taken up where they broke off, whole or not there."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from temi_client.errors import CorruptDownload, ServiceUnreachable
from temi_client.transport import Patience, Transport

# Called with the bytes done and the bytes in all; the latter is 0 while it is not known.
Progress = Callable[[int, int], None]


def download_known(
    transport: Transport,
    path: str,
    target: Path,
    *,
    size: int,
    sha256: str,
    progress: Progress | None = None,
) -> Path:
    """A file whose size and hash are known. A part of it that an earlier call left is used."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Named after the content, so that it is never continued with another one.
    partial = target.with_name(f".{target.name[:100]}.{sha256[:16]}.part")
    patience = Patience(transport.retries)
    with partial.open("ab") as file:
        if file.tell() > size:
            _empty(file)
        while (done := file.tell()) < size:
            try:
                _fetch(transport, path, file, done, size, progress)
            except ServiceUnreachable as error:
                if file.tell() > done:
                    patience.progressed()
                patience.wait_or_raise(error)
        file.flush()
        os.fsync(file.fileno())
    with partial.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256 or partial.stat().st_size != size:
        partial.unlink()
        raise CorruptDownload(path, sha256, found)
    return partial.replace(target)


def _fetch(
    transport: Transport,
    path: str,
    file: IO[bytes],
    done: int,
    size: int,
    progress: Progress | None,
) -> None:
    """Append what is missing from byte `done` on."""
    headers = {"Range": f"bytes={done}-"} if done else {}
    # Compressed on the way, its bytes would be others than those that the range counts.
    with transport.stream(path, headers={**headers, "Accept-Encoding": "identity"}) as response:
        if done and response.status_code != 206:
            _empty(file)  # ranges are not answered here: from the start
            done = 0
        for block in response.iter_bytes():
            file.write(block)
            done += len(block)
            if progress is not None:
                progress(done, size)
            if done > size:
                return  # its hash will tell


def _empty(file: IO[bytes]) -> None:
    file.seek(0)
    file.truncate()


def download_stream(
    transport: Transport,
    path: str,
    target: Path,
    *,
    headers: dict[str, str] | None = None,
    params: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Path:
    """A file that is made while it is sent: it cannot be taken up, only begun again."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with (
            os.fdopen(handle, "wb") as file,
            transport.stream(path, headers=headers, params=params) as response,
        ):
            total = int(response.headers.get("Content-Length", 0))
            for block in response.iter_bytes():
                file.write(block)
                if progress is not None:
                    progress(file.tell(), total)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        return Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
