"""The decoder program: decodes one image at a time, until its parent closes the socket.

It imports Pillow, pillow_heif and numpy, but neither torch nor the database, so that it starts in a
fraction of a second and killing it costs little. The bytes of images and results are in a shared
memory file; requests and responses are lines of JSON on a socket. JSON, because the parent must not
trust a process that decodes untrusted images.
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
    from app.core.datasets.decoding.tasks import TaskResult

_LEAKED_BYTES = 64 * 1024 * 1024  # memory that decoders keep; above it, restart the process
_UNLIMITED = resource.RLIM_INFINITY

Handler = Callable[[dict[str, Any], bytes, DecodeLimits], "TaskResult"]


def main(handle: Handler | None = None) -> None:
    """Command line: socket, shared file, pid of the parent."""
    connection, shared, parent_pid = (int(argument) for argument in sys.argv[1:4])
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
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
        response, result = handle(request, data, limits)
        _limit(None)
        _write(shared, result)
        leaked = _data_bytes() - base - len(data)
        response |= {"bytes": len(result), "must_restart": leaked > _LEAKED_BYTES}
        _send(lines, response)


def _load_decoders() -> Handler:
    import pillow_heif
    from PIL import AvifImagePlugin

    from app.core.datasets.decoding.tasks import run_task

    # There is a process per core already, and every thread needs memory for its stack.
    pillow_heif.options.DECODE_THREADS = 1
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    return run_task


def _limit(limits: DecodeLimits | None) -> None:
    """Sets limits: the kernel refuses more memory, and kills the process after its CPU time."""
    memory = cpu = _UNLIMITED
    if limits is not None:
        memory = _data_bytes() + limits.bytes
        cpu = math.ceil(time.process_time() + limits.seconds)
    if sys.platform == "linux":  # other systems ignore it or count libraries, too
        resource.setrlimit(resource.RLIMIT_DATA, (memory, _UNLIMITED))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, _UNLIMITED))


def _data_bytes() -> int:
    """Writable private memory, as RLIMIT_DATA counts it."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - faster, and called for every image
        return int(file.read().split()[5]) * resource.getpagesize()


def _read(shared: int, size: int) -> bytes:
    data = os.pread(shared, size, 0)
    if len(data) != size:
        raise EOFError(f"the shared file has {len(data)} of {size} bytes")
    return data


def _write(shared: int, result: bytes | memoryview) -> None:
    done = 0
    while done < len(result):
        done += os.pwrite(shared, memoryview(result)[done:], done)


def _send(lines: io.BufferedRWPair, message: dict[str, Any]) -> None:
    lines.write(json.dumps(message).encode() + b"\n")
    lines.flush()


if __name__ == "__main__":
    main()
