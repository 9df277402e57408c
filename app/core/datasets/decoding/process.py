"""The program that decodes: one image at a time, until its parent hangs up.

It imports Pillow, pillow_heif and numpy, and nothing of torch or the database: it starts in a
fraction of a second, so that killing it costs little. Bytes of images and results are in a file
in memory that both sides hold; lines of JSON on a socket tell what to do with them. JSON, because
the parent must not trust a process that decodes what strangers made.
"""

import io
import json
import math
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.platform.processes import die_with_parent

if TYPE_CHECKING:
    from app.core.datasets.decoding.tasks import Answer

_WORN_BYTES = 64 * 1024 * 1024  # memory that it did not get back from its decoders
_UNLIMITED = resource.RLIM_INFINITY

Handler = Callable[[dict[str, Any], bytes, DecodeLimits], "Answer"]


def main(handle: Handler | None = None) -> None:
    """Arguments: socket, shared file, pid of the parent."""
    connection, shared, parent_pid = (int(argument) for argument in sys.argv[1:4])
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    handle = handle or _load_decoders()
    with socket.socket(fileno=connection) as stream, stream.makefile("rwb") as lines:
        _serve(lines, shared, handle)


def _serve(lines: io.BufferedRWPair, shared: int, handle: Handler) -> None:
    base = _data_bytes()
    _send(lines, {"ready": True})
    for line in lines:
        request: dict[str, Any] = json.loads(line)
        data = _read(shared, request["bytes"])
        limits = DecodeLimits(**request["limits"])
        _limit(limits)
        answer, result = handle(request, data, limits)
        _limit(None)
        _write(shared, result)
        answer |= {"bytes": len(result), "worn": _data_bytes() > base + len(data) + _WORN_BYTES}
        _send(lines, answer)


def _load_decoders() -> Handler:
    import pillow_heif
    from PIL import AvifImagePlugin

    from app.core.datasets.decoding.tasks import answer_task

    # There is a process for each core already, and every thread takes memory for its stack.
    pillow_heif.options.DECODE_THREADS = 1
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    return answer_task


def _limit(limits: DecodeLimits | None) -> None:
    """The kernel refuses more memory, and ends the process after too much of its own time."""
    memory = cpu = _UNLIMITED
    if limits is not None:
        memory = _data_bytes() + limits.bytes
        cpu = math.ceil(time.process_time() + limits.seconds)
    if sys.platform == "linux":  # elsewhere this limit is none or counts libraries, too
        resource.setrlimit(resource.RLIMIT_DATA, (memory, _UNLIMITED))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, _UNLIMITED))


def _data_bytes() -> int:
    """Private memory that may be written, used or not: what RLIMIT_DATA counts."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - for every image: it is faster
        return int(file.read().split()[5]) * resource.getpagesize()


def _read(shared: int, size: int) -> bytes:
    data = os.pread(shared, size, 0)
    if len(data) != size:
        raise EOFError(f"{len(data)} of {size} bytes are there")
    return data


def _write(shared: int, result: bytes | memoryview) -> None:
    done = 0
    while done < len(result):
        done += os.pwrite(shared, memoryview(result)[done:], done)


def _send(lines: io.BufferedRWPair, answer: dict[str, Any]) -> None:
    lines.write(json.dumps(answer).encode() + b"\n")
    lines.flush()


if __name__ == "__main__":
    main()
