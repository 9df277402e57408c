"""Memory of the API during the upload of a large zip, and of the worker during its ingest.

.venv/bin/python -m benchmarks.upload_memory --gigabytes 2
"""

import argparse
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import psutil
from PIL import Image

from temi_client import TemiClient

MB = 1024 * 1024


def noisy_photo(seed: int) -> bytes:
    """A JPEG of about a megabyte that cannot be compressed further."""
    pixels = np.random.default_rng(seed).integers(0, 256, (800, 1000, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=90)
    return out.getvalue()


def write_zip(path: Path, gigabytes: float) -> int:
    photos = [noisy_photo(seed) for seed in range(8)]
    count = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        while path.stat().st_size < gigabytes * 1024 * MB:
            trailer = count.to_bytes(4)  # makes every file different; decoders ignore it
            archive.writestr(f"{count:06d}.jpg", photos[count % 8] + trailer)
            count += 1
    return count


class PeakMemory(threading.Thread):
    """Return the peak memory of each process of the tree, by kind."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._stopped = threading.Event()
        self.peaks: dict[str, int] = {}

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            for process in self._root.children(recursive=True):
                try:
                    line = " ".join(process.cmdline())
                    kinds = {"app.server": "api", "-m worker": "worker", "spawn_main": "job"}
                    kind = next((k for word, k in kinds.items() if word in line), None)
                    if kind:
                        used = process.memory_info().rss
                        self.peaks[kind] = max(self.peaks.get(kind, 0), used)
                except psutil.Error:
                    continue

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    gigabytes = parser.parse_args().gigabytes
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        archive = Path(folder) / "photos.zip"
        count = write_zip(archive, gigabytes)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environment = os.environ | {"TEMI_DATA_DIR": f"{folder}/data", "TEMI_PORT": str(port)}
        command = [sys.executable, "-m", "app.cli.main", "serve"]
        service = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            measure(f"http://127.0.0.1:{port}", service.pid, archive, count)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(30)


def measure(url: str, pid: int, archive: Path, count: int) -> None:
    with TemiClient(url, timeout=600) as client:
        while True:
            try:
                if client.ready().ready:
                    break
            except Exception:  # noqa: BLE001 - not up yet
                time.sleep(0.2)
        memory = PeakMemory(pid)
        memory.start()
        started = time.monotonic()
        job = client.upload_dataset(archive, name="photos")
        sent = time.monotonic()
        client.wait(job.id)
        read = time.monotonic()
        memory.stop()
    size = archive.stat().st_size / MB
    print(f"upload  {size:8.0f} MB  {sent - started:6.1f} s  {size / (sent - started):6.0f} MB/s")
    print(f"ingest  {count:8d} images  {read - sent:6.1f} s  {count / (read - sent):6.0f} images/s")
    for kind, used in sorted(memory.peaks.items()):
        print(f"peak memory of {kind:7s} {used / MB:6.0f} MB")


if __name__ == "__main__":
    main()
