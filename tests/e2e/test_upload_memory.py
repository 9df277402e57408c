"""The short form of benchmarks/upload_memory.py, which takes any size."""

import os
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import psutil

_MB = 1024 * 1024


def test_a_large_upload_does_not_grow_the_api(service: Any, tmp_path: Path) -> None:
    archive = tmp_path / "large.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for number in range(50):
            out.writestr(f"{number}.jpg", b"\xff\xd8\xff" + os.urandom(4 * _MB))
    api = service.api()
    peak, stopped = 0, threading.Event()

    def look() -> None:
        nonlocal peak
        while not stopped.is_set():
            peak = max(peak, api.memory_info().rss)
            time.sleep(0.01)

    before = api.memory_info().rss
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        with service.client() as client:
            job = client.upload_dataset(archive, name="large")
            client.cancel(job.id)
    finally:
        stopped.set()
        watcher.join()
    assert isinstance(api, psutil.Process)
    assert peak < 400 * _MB
    assert peak - before < 60 * _MB  # of the 200 that were sent
