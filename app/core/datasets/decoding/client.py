"""The parent's side of one decoder process."""

import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from app.core.datasets.decoding.headers import DecodeLimits, MiB
from app.core.platform.processes import import_paths

PROGRAM = ("-m", "app.core.datasets.decoding.process")
_START_SECONDS = 60.0  # a machine may be very busy
# The kernel limits CPU time. The wall-clock limit is higher, so that images are not refused on a
# busy machine, and it ends processes that sleep.
_CLOCK_FACTOR = 3.0
_READ_BYTES = 64 * 1024
_KEEP_BYTES = 4 * MiB  # of the shared file: allocating its memory again takes longer


class DecodingTooSlow(Exception):
    """The process was killed after its time limit."""


class DecoderDied(Exception):
    """The process has ended unexpectedly, or sent an invalid result."""


class DecoderProcess:
    """Decodes one image at a time. End it after an exception."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._connection, child_end = socket.socketpair()
        self._shared = _open_shared_file()
        self._received = b""
        try:
            with child_end:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        *program,
                        *map(str, (child_end.fileno(), self._shared, os.getpid())),
                    ],
                    pass_fds=(child_end.fileno(), self._shared),
                    stdin=subprocess.DEVNULL,
                    env=_environment(),
                )
        except BaseException:
            self._connection.close()
            os.close(self._shared)
            raise
        self.must_restart = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        if self._read_line(time.monotonic() + _START_SECONDS) is None:
            raise DecoderDied("it did not start in time")

    def run(
        self,
        request: dict[str, Any],
        data: bytes,
        limits: DecodeLimits,
        *,
        slow_seconds: float,
        on_slow: Callable[[], None],
    ) -> tuple[dict[str, Any], memoryview]:
        """The result and its bytes; calls `on_slow` after `slow_seconds`."""
        message = request | {"bytes": len(data), "limits": asdict(limits)}
        self._write(data)
        started = time.monotonic()
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise DecoderDied(self._exit_reason()) from error
        line = self._read_line(started + slow_seconds)
        if line is None:
            on_slow()
            line = self._read_line(started + _CLOCK_FACTOR * limits.seconds)
        if line is None:
            raise DecodingTooSlow
        response: dict[str, Any] = json.loads(line)
        self.must_restart = response.pop("must_restart")
        return response, self._read(response.pop("bytes"))

    def kill(self) -> None:
        """Kills the process; another thread may be waiting for its result."""
        self._process.kill()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._connection.close()
        os.close(self._shared)

    def _write(self, data: bytes) -> None:
        if os.fstat(self._shared).st_size > _KEEP_BYTES:
            os.ftruncate(self._shared, 0)
        done = 0
        while done < len(data):
            done += os.pwrite(self._shared, memoryview(data)[done:], done)

    def _read(self, size: int) -> memoryview:
        """Reads without a memory map, because the process may have truncated the file."""
        result = np.empty(size, dtype=np.uint8)
        done = 0
        while done < size:
            count = os.preadv(self._shared, [result.data[done:]], done)
            if count == 0:
                raise DecoderDied("its result is incomplete")
            done += count
        return result.data

    def _read_line(self, until: float) -> bytes | None:
        """The next line; None if none has arrived by then."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        while b"\n" not in self._received:
            left = until - time.monotonic()
            if left <= 0 or not poll.poll(math.ceil(1000 * left)):
                return None
            try:
                received = self._connection.recv(_READ_BYTES)
            except ConnectionResetError:
                received = b""
            if not received:
                self._raise_ended()
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _raise_ended(self) -> None:
        if self._process.wait() == -signal.SIGXCPU:
            raise DecodingTooSlow
        raise DecoderDied(self._exit_reason())

    def _exit_reason(self) -> str:
        code = self._process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _open_shared_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("temi-decoding")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        **import_paths(),
        # Numpy's BLAS is not used here; each of its threads would allocate buffers.
        "OPENBLAS_NUM_THREADS": "1",
        # Large blocks are returned to the system at once, or the memory limit would be imprecise.
        "MALLOC_MMAP_THRESHOLD_": str(4 * MiB),
        "MALLOC_TRIM_THRESHOLD_": str(32 * MiB),
    }
