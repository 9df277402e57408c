"""Downloads: streamed to a temporary file that is renamed when complete."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from temi_client.errors import CorruptDownload, ServiceUnreachable
from temi_client.transport import Backoff, Transport

# Called with the bytes transferred so far and the total, which is 0 while unknown.
Progress = Callable[[int, int], None]


def download_resumable(
    transport: Transport,
    path: str,
    target: Path,
    *,
    size: int,
    sha256: str,
    progress: Progress | None = None,
) -> Path:
    """Downloads a file of known size and hash; continues the partial file of an earlier call."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Named after the content, so that it is never continued with other content.
    partial = target.with_name(f".{target.name[:100]}.{sha256[:16]}.part")
    backoff = Backoff(transport.retries)
    with partial.open("ab") as file:
        if file.tell() > size:
            _empty(file)
        while (done := file.tell()) < size:
            try:
                _fetch(transport, path, file, done, size, progress)
            except ServiceUnreachable as error:
                if file.tell() > done:
                    backoff.reset()
                backoff.wait_or_raise(error)
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
    """Appends the bytes from `done` on."""
    headers = {"Range": f"bytes={done}-"} if done else {}
    # Ranges count the bytes of the file, not those of a compressed transfer.
    with transport.stream(path, headers={**headers, "Accept-Encoding": "identity"}) as response:
        if done and response.status_code != 206:
            _empty(file)  # the server ignored the range: start over
            done = 0
        for block in response.iter_bytes():
            file.write(block)
            done += len(block)
            if progress is not None:
                progress(done, size)
            if done > size:
                return  # the check of the hash fails


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
    """Downloads a file that the service generates while sending; it cannot be resumed."""
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
