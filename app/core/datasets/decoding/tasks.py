"""What a decoder is asked to do with an image, and what it answers."""

from dataclasses import asdict
from typing import Any

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.images import cut_square, inspect_image, make_thumbnail
from app.core.platform.errors import ImageRejected
from temi.backbones.cropping import CentralSquare

Answer = tuple[dict[str, Any], bytes | memoryview]
"""What to tell, and the bytes of the result."""


def answer_task(request: dict[str, Any], data: bytes, limits: DecodeLimits) -> Answer:
    """A refusal is an answer with `code` and `detail`."""
    try:
        return _run(request, data, limits)
    except ImageRejected as error:
        return {"code": error.code, "detail": error.detail}, b""


def _run(request: dict[str, Any], data: bytes, limits: DecodeLimits) -> Answer:
    match request["task"]:
        case "inspect":
            return asdict(inspect_image(data, limits=limits)), b""
        case "square":
            square = cut_square(data, CentralSquare(**request["square"]), limits=limits)
            return {"side": square.shape[0]}, square.reshape(-1).data
        case "thumbnail":
            return {}, make_thumbnail(data, request["size"], limits=limits)
        case unknown:
            raise ValueError(f"unknown task {unknown!r}")
