"""A program in the place of the one that decodes: what it does is the end of the image's bytes."""

import os
import time
from typing import Any

from app.core.decoding.process import Answer, main
from app.core.images import cut_square, inspect_image
from temi.cropping import CentralSquare

_FACTS = {"width": 1, "height": 1, "format": "PNG", "notes": []}


def handle(request: dict[str, Any], data: bytes) -> Answer:
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
        square = cut_square(data, CentralSquare(**request["square"]))
        return {"side": len(square)}, square.tobytes()
    inspect_image(data)
    return _FACTS | {"notes": [str(os.getpid())]}, b""


if __name__ == "__main__":
    main(handle)
