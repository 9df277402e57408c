"""A decoder program for tests: the last bytes of the image say what it does."""

import os
import time
from typing import Any

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.decoding.process import main
from app.core.datasets.decoding.tasks import TaskResult, run_task

_FACTS = {"width": 1, "height": 1, "format": "PNG", "notes": []}


def handle(request: dict[str, Any], data: bytes, limits: DecodeLimits) -> TaskResult:
    if data.endswith(b"sleep"):
        time.sleep(3600)
    if data.endswith(b"compute"):
        while True:
            pass
    if data.endswith(b"exit"):
        os._exit(3)
    if data.endswith(b"allocate"):
        try:
            bytearray(400 * 1024 * 1024)
        except MemoryError:
            return {"code": "image_undecodable", "detail": "no memory"}, b""
    if request["task"] == "square":
        return run_task(request, data, limits)
    return _FACTS | {"notes": [str(os.getpid())]}, b""


if __name__ == "__main__":
    main(handle)
