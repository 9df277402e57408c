"""A public client resumes its upload after the server was killed."""

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
from tusclient import client as tus_client
from tusclient.exceptions import TusCommunicationError

from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from app.core.storage.keys import upload_key
from tests.servers import free_port
from tests.waiting import LONG_SECONDS, join, wait_until

_TUS = {"Tus-Resumable": "1.0.0"}
_PIECE = _TUS | {"Content-Type": "application/offset+octet-stream"}


@pytest.fixture
def served(settings: Settings) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The API in a process of its own: its URL and the process."""
    port = free_port()
    process = _serve(settings, port)
    yield f"http://127.0.0.1:{port}", process
    process.kill()
    process.wait()


def _serve(settings: Settings, port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "app.server"],
        env=os.environ
        | {
            "TEMI_DATA_DIR": str(settings.data_dir),
            "TEMI_LOG_FORMAT": "json",
            "TEMI_PORT": str(port),
        },
        stdout=subprocess.DEVNULL,
    )

    def answers() -> bool:
        try:
            httpx.get(f"http://127.0.0.1:{port}/livez", timeout=LONG_SECONDS)
        except httpx.TransportError:
            assert process.poll() is None
            return False
        return True

    wait_until(answers, "the API answers")
    return process


class _Breaking(io.BytesIO):
    """A file that cannot be read to its end at the first try."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 3_000_000:
            raise ConnectionError("the line broke")
        return super().read(size)


def test_a_public_client_resumes_after_a_kill(
    served: tuple[str, subprocess.Popen[bytes]], settings: Settings, runtime: Runtime
) -> None:
    base, process = served
    content = os.urandom(5_000_000)
    client = tus_client.TusClient(f"{base}/v1/uploads")
    uploader = client.uploader(file_stream=_Breaking(content), chunk_size=1_000_000)
    with pytest.raises((ConnectionError, TusCommunicationError)):
        uploader.upload()
    assert uploader.url is not None
    kept = _kill_in_the_middle(runtime, uploader.url, content, process)

    port = int(base.rpartition(":")[2])
    restarted = _serve(settings, port)
    try:
        again = client.uploader(
            file_stream=io.BytesIO(content), url=uploader.url, chunk_size=1_000_000
        )
        assert again.offset >= kept > 2_000_000
        again.upload()
        assert again.offset == len(content)
    finally:
        restarted.kill()
        restarted.wait()
    path = runtime.storage.path(upload_key(uploader.url.rpartition("/")[2]))
    assert path.read_bytes() == content


def _kill_in_the_middle(
    runtime: Runtime, url: str, content: bytes, process: subprocess.Popen[bytes]
) -> int:
    """Sends half of a chunk and kills the server once it has stored some of it; returns the offset
    before."""
    offset = int(httpx.head(url, headers=_TUS, timeout=LONG_SECONDS).headers["Upload-Offset"])
    killed = threading.Event()

    def half() -> Iterator[bytes]:
        yield content[offset : offset + 1_500_000]
        killed.wait(LONG_SECONDS)

    def send() -> None:
        headers = _PIECE | {"Upload-Offset": str(offset)}
        with suppress(httpx.TransportError):
            httpx.patch(url, content=half(), headers=headers, timeout=LONG_SECONDS)

    thread = threading.Thread(target=send)
    thread.start()
    path = runtime.storage.path(upload_key(url.rpartition("/")[2]))
    try:
        wait_until(lambda: path.stat().st_size > offset, "a part of the piece is stored")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed.set()
        join(thread)
    return offset
